"""A client of a blotter server: streams, pages, gains. No dependencies."""

from ._client import Batch, Blotter
from ._errors import BlotterError
from ._trade import Trade

__all__ = ["Batch", "Blotter", "BlotterError", "Trade"]
__version__ = "0.1.0"
