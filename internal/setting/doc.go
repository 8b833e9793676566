// Package setting reads single configuration values: durations, sizes and
// secrets, and says where a value was written and what is wrong with it.
//
// It knows no key and no file format. internal/app/config and internal/rules
// read their own sections with it, so that every refusal of a configuration
// has one form.
package setting
