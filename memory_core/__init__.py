"""What memory is: values, rules, storage and recall. It knows no web framework, no task queue and no broker."""
