// Package app wires the program: options, clients, run, and a clean-up in the
// reverse order. It is the only package that knows all others, and holds no
// domain logic.
package app
