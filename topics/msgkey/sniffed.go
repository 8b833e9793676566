package msgkey

// Sniffed lists the extractors that auto chooses from.
func Sniffed() []string {
	var names []string
	for _, x := range table() {
		if x.format != Unknown {
			names = append(names, x.name)
		}
	}
	return names
}
