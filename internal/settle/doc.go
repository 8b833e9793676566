// Package settle is what an operator decides about raw partitions, on the stores
// directly: dedup skip, dedup repair, dedup topics adopt and retire (ARCHITECTURE
// §4). Each looks first, and refuses in one sentence where the position is not
// exact or somebody works on the partition; then it is one transaction in
// PostgreSQL, with a row in dedup_action. A session that works on the partition
// all the same is refused by the claim, which the transaction replaces.
package settle
