"""The independent checker: does a plan on disk deliver every sum?"""
