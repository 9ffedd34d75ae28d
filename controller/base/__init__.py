"""What every control's class stands on: errors, and the plan as a switch sees it."""
