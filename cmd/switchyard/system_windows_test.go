package main

import "errors"

func makeFifo(string) error { return errors.ErrUnsupported }

// killGroup has nothing to do: a command ends with its agent.
func killGroup(int) {}
