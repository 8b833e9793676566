package topics

import "regexp/syntax"

// nameBytes is Kafka's alphabet for topic names.
const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// pair is a state of two programs read side by side.
type pair struct{ a, b uint32 }

// step remembers how a pair was reached, to spell the name that leads there.
type step struct {
	from pair
	char byte
}

// common looks for a topic name that both programs match, and returns one of
// the shortest. It walks the product of the two automata, which has at most
// len(a.Inst)*len(b.Inst) states, so the answer "none" is a proof. Assertions
// inside a pattern (^, $, \b) are taken as met: that can only find a name too
// many, never miss one.
func common(a, b *syntax.Prog) (name string, found bool) {
	if len(a.Inst) == 0 || len(b.Inst) == 0 {
		return "", false
	}
	seen := map[pair]step{}
	var queue []pair
	enter := func(at pair, how step) {
		for _, x := range closure(a, at.a) {
			for _, y := range closure(b, at.b) {
				p := pair{x, y}
				if _, ok := seen[p]; !ok {
					seen[p] = how
					queue = append(queue, p)
				}
			}
		}
	}
	start := pair{uint32(a.Start), uint32(b.Start)} //nolint:gosec // small programs
	enter(start, step{})
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		x, y := &a.Inst[p.a], &b.Inst[p.b]
		if x.Op == syntax.InstMatch && y.Op == syntax.InstMatch {
			return spell(seen, p), true
		}
		if x.Op == syntax.InstMatch || y.Op == syntax.InstMatch {
			continue
		}
		for i := range len(nameBytes) {
			c := nameBytes[i]
			if x.MatchRune(rune(c)) && y.MatchRune(rune(c)) {
				enter(pair{x.Out, y.Out}, step{from: p, char: c})
				break // where both go next does not depend on the character
			}
		}
	}
	return "", false
}

// closure is the set of instructions that read a character or match, reached
// from pc without reading one.
func closure(p *syntax.Prog, pc uint32) []uint32 {
	var out []uint32
	seen := make(map[uint32]bool)
	stack := []uint32{pc}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			stack = append(stack, in.Out)
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	return out
}

// spell follows the steps back to the start, whose pairs have no character.
func spell(seen map[pair]step, p pair) string {
	var back []byte
	for s := seen[p]; s.char != 0; s = seen[s.from] {
		back = append(back, s.char)
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return string(back)
}
