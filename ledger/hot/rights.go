package hot

import (
	"context"
	"strings"

	"dedupledger/ledger"
)

// Rules are the least rights of an ACL user on keys of the prefix, in the order
// of `ACL SETUSER`: the script by its hash and by its source, and what it calls.
// HELLO and AUTH need no right. Of a Cluster the client asks who has which slot.
func Rules(prefix string, cluster bool) []string {
	rules := []string{"~" + prefix + "*", "+evalsha", "+eval", "+get", "+set"}
	if cluster {
		rules = append(rules, "+cluster|slots")
	}
	return append(rules, Optional)
}

// Optional is the right that is missed without harm: only the metrics of Redis's
// memory and evictions are then not there.
const Optional = "+info"

// Grant is the command that gives a user these rights and takes all others.
func Grant(user, prefix string, cluster bool) string {
	if user == "" {
		user = "default"
	}
	return "ACL SETUSER " + user + " resetkeys resetchannels -@all " + strings.Join(Rules(prefix, cluster), " ")
}

// checkValue is as long as the script reads into what it finds: another process's
// check may be there.
const checkValue = "check of the rights"

// Check does once what Remember does for each fact, under a key that is gone at
// once, so that a start says what Redis refuses before a message needs it, and
// an idle filter that it is back. The answer goes to the circuit; the error
// says nothing about any message.
func (h *Hot) Check(ctx context.Context) error {
	probe, ok := h.circuit.allow()
	if !ok {
		return ErrCircuitOpen
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout+dialTimeout)
	defer cancel()
	run := run{hot: h}
	run.all(ctx, []write{{fact: &ledger.Fact{Closed: true}, key: h.base + "check", value: []byte(checkValue), px: 1}})
	h.circuit.done(ctx, probe, run.verdict(1))
	return run.err(1)
}
