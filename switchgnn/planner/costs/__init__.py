"""What a plan costs, and what others would."""
