// Package config reads the configuration: a YAML file, and the environment
// over it. The table in keys.go is the whole of it, one line per key.
//
// It is read and checked before anything connects, and everything that is
// wrong is reported at once, each with the line or the variable it comes from.
// Nothing that was written is ignored: an unknown key is an error, and so is a
// key whose feature comes with a later release at any value but its default.
package config
