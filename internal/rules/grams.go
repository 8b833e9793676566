package rules

// gramLength is how many octets of a literal are looked up.
const gramLength = 8

// gramIndex finds the rules whose key glob has a text in its middle, as
// edifact:*/4012345000023:14/*, where many begin alike: the rules of hundreds of
// partners as receivers. Of each literal one stretch of gramLength octets stands
// for it, the one that fewest others have. A key is slid over once; a filter of
// 8 KiB says for nearly every stretch that it stands for none.
type gramIndex struct {
	filter [1 << 10]uint64
	rules  map[uint64][]int // by stretch, ascending
}

// bit is the stretch's place in the filter.
func bit(gram uint64) (word, mask uint64) {
	h := gram * 0x9E3779B97F4A7C15 >> 48 // Fibonacci hashing, to 16 bits
	return h >> 6, 1 << (h & 63)
}

// grams calls visit with each stretch of gramLength octets.
func grams(text string, visit func(gram uint64)) {
	var g uint64
	for i := range len(text) {
		if g = g>>8 | uint64(text[i])<<56; i >= gramLength-1 {
			visit(g)
		}
	}
}

// newGramIndex takes literals of at least gramLength octets with the numbers of
// their rules, ascending.
func newGramIndex(literals []string, rules []int) *gramIndex {
	if len(literals) == 0 {
		return nil
	}
	count := map[uint64]int{}
	for _, l := range literals {
		grams(l, func(g uint64) { count[g]++ })
	}
	x := &gramIndex{rules: map[uint64][]int{}}
	for i, l := range literals {
		var rarest uint64
		fewest := len(literals)*len(l) + 1
		grams(l, func(g uint64) {
			if count[g] < fewest {
				rarest, fewest = g, count[g]
			}
		})
		x.rules[rarest] = append(x.rules[rarest], rules[i])
		word, mask := bit(rarest)
		x.filter[word] |= mask
	}
	return x
}

// each calls visit with the rules in among whose stretch is in key. One may come
// twice, and in any order.
func (x *gramIndex) each(key string, among bitset, visit func(rule int)) {
	if x == nil {
		return
	}
	var g uint64
	for i := range len(key) {
		g = g>>8 | uint64(key[i])<<56
		word, mask := bit(g)
		if i < gramLength-1 || x.filter[word]&mask == 0 {
			continue
		}
		for _, rule := range x.rules[g] {
			if among.has(rule) {
				visit(rule)
			}
		}
	}
}
