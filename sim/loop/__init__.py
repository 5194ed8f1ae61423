"""An asyncio event loop in virtual time."""
