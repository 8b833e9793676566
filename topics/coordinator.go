package topics

// CoordinatorPartition is the partition of an internal topic that Kafka keeps a
// group or a transactional id in: Java's String.hashCode without its sign, modulo
// the count of partitions, which is not 0.
func CoordinatorPartition(name string, count int) int32 {
	var h int32
	for _, c := range []byte(name) { // names of groups are ASCII, as a rule
		h = 31*h + int32(c)
	}
	return (h & 0x7fffffff) % int32(count) //nolint:gosec // a count of partitions
}
