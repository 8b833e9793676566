//go:build !faultpoints

package processor

// faultPoints is what a program that is built to be broken has more.
type faultPoints struct{}

// at names a point between two steps, where a process may die, stand still or be
// told to stop. In the program that is delivered it is nothing: the compiler
// leaves no call and no name behind, which integration/crash checks. With the
// build tag faultpoints it asks Config.Fault.
func (*session) at(string)   {}
func (*client) at(string)    {}
func (*learner) at(string)   {}
func (*Processor) at(string) {}
