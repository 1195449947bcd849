"""The images and networks of the tests of the library."""

from tests.images.conftest import images, network, new_images

__all__ = ["images", "network", "new_images"]
