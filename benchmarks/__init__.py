"""Measurements in executed instructions and bytes, side by side with the stock stack."""
