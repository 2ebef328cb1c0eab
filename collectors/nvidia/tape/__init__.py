"""What a driver said, call by call, kept so that the same plugin reads the same samples from it elsewhere: for bug reports and fixtures."""
