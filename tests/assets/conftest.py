from tests.durable.conftest import broker, house, house_factory

__all__ = ["broker", "house", "house_factory"]
