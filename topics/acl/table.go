package acl

// The tables of docs/rights.md. They are the least there is: a test takes each
// right away in turn and requires that it is missed.

// Raw are the filter's rights on a topic that it reads.
func Raw(topic Name) Rights { return Rights{{Topic, topic, Read}} }

// Output are its rights on a topic that it writes to: read to learn after a loss,
// DescribeConfigs for max.message.bytes.
func Output(topic Name) Rights {
	return Rights{{Topic, topic, Read}, {Topic, topic, Write}, {Topic, topic, DescribeConfigs}}
}

// Member are its rights in its consumer group, and on the transactional ids that
// begin with the group's name. A transactional producer needs no IdempotentWrite.
func Member(group string) Rights {
	return Rights{{Group, Named(group), Read}, {TransactionalID, Prefix(group + "-"), Write}}
}

// Filter is all of it.
func Filter(raw, outputs []Name, group string) Rights {
	var all Rights
	for _, n := range raw {
		all = append(all, Raw(n)...)
	}
	for _, n := range outputs {
		all = append(all, Output(n)...)
	}
	return append(all, Member(group)...)
}

// Ensure are the rights of `dedup topics ensure` on every topic that it may
// make; those on topics that it compares are the last two.
func Ensure(topics []Name) Rights {
	var all Rights
	for _, n := range topics {
		all = append(all, Right{Topic, n, Create}, Right{Topic, n, Describe}, Right{Topic, n, DescribeConfigs})
	}
	return all
}

// Check are the rights of `dedup topics check` on every topic that it looks for.
func Check(topics []Name) Rights {
	var all Rights
	for _, n := range topics {
		all = append(all, Right{Topic, n, Describe}, Right{Topic, n, DescribeConfigs})
	}
	return all
}

// Doctor are the rights that `dedup doctor` has use for beside the filter's: to
// compare the retention of raw topics.
func Doctor(raw []Name) Rights {
	var all Rights
	for _, n := range raw {
		all = append(all, Right{Topic, n, DescribeConfigs})
	}
	return all
}

// Tail are the rights of `dedup topics tail` on the topics it shows. It is in no
// group.
func Tail(topics []Name) Rights {
	var all Rights
	for _, n := range topics {
		all = append(all, Right{Topic, n, Read})
	}
	return all
}
