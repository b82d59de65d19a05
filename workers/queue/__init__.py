"""Both ends of the writer queue: admission, reading, replies, doorbells. Nothing else touches the stream."""
