package topics

// Partition says where the output of a raw record goes. Where both topics have
// as many partitions it is the record's own: order is kept, and a session
// writes only to partitions of its own, so that a dead session's open
// transaction holds up no reader of the others. Else it goes by the record
// key, as Kafka's default partitioner does it (murmur2, high bit masked), so
// that a scope stays in one partition; a record without a key goes by its raw
// partition, and not at random, so that its redelivery meets the same one.
func Partition(key []byte, rawPartition, rawCount, outCount int32) int32 {
	switch {
	case rawCount == outCount || outCount < 1:
		return rawPartition
	case key == nil:
		return rawPartition % outCount
	default:
		return int32(murmur2(key)&0x7fffffff) % outCount
	}
}

// murmur2 is the 32-bit hash of Kafka's clients: org.apache.kafka.common.utils
// Utils.murmur2, after Austin Appleby's MurmurHash2.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := 0x9747b28c ^ uint32(len(b)) //nolint:gosec // as in the original; keys are short
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> 24
		k *= m
		h = h*m ^ k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
