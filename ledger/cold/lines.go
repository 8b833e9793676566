package cold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dedupledger/ledger"
)

// The closed codes with which the ledger itself makes a record INVALID.
const (
	codeFedByAPI       = "scope.fed_by_api"
	codeFedByKafka     = "scope.fed_by_kafka"
	codeOutputRejected = "output.rejected"
)

// refusals are parallel to a chunk's registrations: the code that turns one
// into an INVALID, or "".
type refusals []string

// chunk is a ledger.Chunk laid out as the function takes it.
type chunk struct {
	*ledger.Chunk
	refused  refusals
	scopes   []string // distinct, sorted by byte: the order of the locks
	accounts []string // distinct
	advances []int    // indices of Advances, sorted by (topic id, partition)
	heads    []int32  // per registration, 1-based; 0: INVALID
	aliases  []alias  // in the order of registrations
	scope    []int32  // per registration, 1-based into scopes; 0: INVALID
	advance  []int32  // per registration, 1-based into advances; 0: not from Kafka
	account  []int32  // per registration, 1-based into accounts
}

// alias is a key of a registration beside its primary key.
type alias struct {
	of   int   // index of the registration
	key  int   // index among its keys
	name int32 // the head of the lines with this primary key, else a number behind the lines
}

func layOut(c *ledger.Chunk, refused refusals) (*chunk, error) {
	k := &chunk{Chunk: c, refused: refused}
	if err := k.check(); err != nil {
		return nil, err
	}
	k.layScopes()
	k.layHeads()
	k.layAccounts()
	return k, k.layAdvances()
}

// check refuses what no caller should send: a wrong gate in an origin would
// make it unequal to itself, and the first message a duplicate of its own row.
func (k *chunk) check() error {
	if len(k.Registrations) > ledger.MaxChunk {
		return fmt.Errorf("a chunk of %d registrations; %d are allowed", len(k.Registrations), ledger.MaxChunk)
	}
	for i := range k.Registrations {
		r := &k.Registrations[i]
		if r.Origin.Gate != k.Gate {
			return fmt.Errorf("registration %d has gate %d in a chunk of gate %d", i, r.Origin.Gate, k.Gate)
		}
		if k.Gate == ledger.GateKafka && (r.Origin.Client != "" || r.Origin.Attempt != "") {
			return fmt.Errorf("registration %d is a Kafka record and has a client or an attempt", i)
		}
		if len(r.Keys) >= 1 && r.HashMode == "" {
			return fmt.Errorf("registration %d has no hash mode", i)
		}
		if err := checkAliases(r.Keys); err != nil {
			return fmt.Errorf("registration %d %w", i, err)
		}
	}
	return nil
}

// checkAliases refuses keys that do not go together: one scope is one lock, and
// one window is what makes the rows of a record end at the same moment.
func checkAliases(keys []ledger.Key) error {
	if len(keys) > 1+ledger.MaxAliases {
		return fmt.Errorf("has %d aliases; %d are allowed", len(keys)-1, ledger.MaxAliases)
	}
	for i := 1; i < len(keys); i++ {
		if keys[i].Scope != keys[0].Scope || keys[i].Window != keys[0].Window {
			return errors.New("has an alias of another scope or window")
		}
		for j := range i {
			if keys[j].Key == keys[i].Key {
				return errors.New("has one key twice")
			}
		}
	}
	return nil
}

// keyed tells whether registration i asks for a row.
func (k *chunk) keyed(i int) bool { return len(k.Registrations[i].Keys) > 0 && k.refused[i] == "" }

func (k *chunk) reason(i int) string {
	if k.refused[i] != "" {
		return k.refused[i]
	}
	return k.Registrations[i].Reason
}

func (k *chunk) layScopes() {
	numbers := map[string]int32{}
	for i := range k.Registrations {
		if k.keyed(i) {
			numbers[k.Registrations[i].Keys[0].Scope] = 0
		}
	}
	for s := range numbers {
		k.scopes = append(k.scopes, s)
	}
	slices.Sort(k.scopes)
	for i, s := range k.scopes {
		numbers[s] = int32(i + 1)
	}
	k.scope = make([]int32, len(k.Registrations))
	for i := range k.Registrations {
		if k.keyed(i) {
			k.scope[i] = numbers[k.Registrations[i].Keys[0].Scope]
		}
	}
}

func (k *chunk) layHeads() {
	type place struct {
		scope int32
		key   string
	}
	first := make(map[place]int32, len(k.Registrations))
	k.heads = make([]int32, len(k.Registrations))
	several := false
	for i := range k.Registrations {
		if !k.keyed(i) {
			continue
		}
		at := place{k.scope[i], k.Registrations[i].Keys[0].Key}
		if first[at] == 0 {
			first[at] = int32(i + 1)
		}
		k.heads[i] = first[at]
		several = several || len(k.Registrations[i].Keys) > 1
	}
	if !several {
		return
	}
	next := int32(len(k.Registrations)) //nolint:gosec // at most MaxChunk
	for i := range k.Registrations {
		if !k.keyed(i) {
			continue
		}
		for j := 1; j < len(k.Registrations[i].Keys); j++ {
			at := place{k.scope[i], k.Registrations[i].Keys[j].Key}
			if first[at] == 0 {
				next++
				first[at] = next
			}
			k.aliases = append(k.aliases, alias{of: i, key: j, name: first[at]})
		}
	}
}

func (k *chunk) layAccounts() {
	numbers := map[string]int32{}
	k.account = make([]int32, len(k.Registrations))
	for i := range k.Registrations {
		account := k.Registrations[i].Account
		if numbers[account] == 0 {
			k.accounts = append(k.accounts, account)
			numbers[account] = int32(len(k.accounts)) //nolint:gosec // at most MaxChunk
		}
		k.account[i] = numbers[account]
	}
}

func (k *chunk) layAdvances() error {
	k.advances = make([]int, len(k.Advances))
	for i := range k.advances {
		k.advances[i] = i
	}
	slices.SortFunc(k.advances, func(a, b int) int {
		p, q := k.Advances[a].Partition, k.Advances[b].Partition
		return cmp.Or(bytes.Compare(p.Topic[:], q.Topic[:]), cmp.Compare(p.Partition, q.Partition))
	})
	k.advance = make([]int32, len(k.Registrations))
	if k.Gate != ledger.GateKafka {
		return nil
	}
	numbers := make(map[ledger.Partition]int32, len(k.Advances))
	for i, a := range k.advances {
		numbers[k.Advances[a].Partition] = int32(i + 1)
	}
	for i := range k.Registrations {
		o := k.Registrations[i].Origin
		p := ledger.Partition{Topic: o.Topic, Partition: o.Partition}
		if numbers[p] == 0 {
			return fmt.Errorf("registration %d is of partition %s, for which the chunk has no advance", i, p)
		}
		k.advance[i] = numbers[p]
	}
	return nil
}

// wasRefused finds the registrations that an answer refused.
func (k *chunk) wasRefused(scopes, lines []int32) refusals {
	now := slices.Clone(k.refused)
	code := codeFedByAPI
	if k.Gate == ledger.GateAPI {
		code = codeFedByKafka
	}
	for i := range k.Registrations {
		if slices.Contains(scopes, k.scope[i]) {
			now[i] = code
		}
		if slices.Contains(lines, int32(i+1)) {
			now[i] = codeOutputRejected
		}
	}
	return now
}
