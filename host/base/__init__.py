"""What every exchange stands on: errors, pace, congestion control, compression, counters."""
