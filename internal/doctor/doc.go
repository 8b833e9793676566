// Package doctor looks at everything the filter stands on and tells each fault
// with its repair. It changes nothing but one transaction on a clean topic, which
// it aborts. What the stores tell is put into a plain value (Cluster, Server,
// Partition, …), and a function without I/O judges it.
package doctor
