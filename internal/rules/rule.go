package rules

import (
	"time"

	"dedupledger/internal/setting"
	"dedupledger/topics/msgkey"
)

// Bounds of a window (ARCHITECTURE §3), and what applies where no rule sets one.
const (
	MinWindow     = time.Second
	MaxWindow     = 400 * setting.Day
	DefaultWindow = 30 * setting.Day
)

// The values of mode and payload.
const (
	ModeEnforce = "enforce"
	ModeObserve = "observe"
	PayloadFull = "full"
	PayloadNone = "none"
)

// Setting is a value a rule may set, with the place where it is written.
type Setting[T any] struct {
	Value T
	Set   bool
	At    setting.Place
}

// Rule is one entry of `flows`. Match and Key say what it applies to; every
// other field it may set or leave to a later rule.
type Rule struct {
	Path string        // flows[4]; "" of a built-in rule
	At   setting.Place // where the rule begins

	Match Setting[string] // glob on tenant:flow
	Key   Setting[string] // glob on the extracted key, before with_date is appended

	Mode       Setting[string]        // enforce
	Entry      Setting[string]        // auto
	Extractors Setting[[]string]      // chain, first key wins
	Aliases    Setting[[]string]      // extractors of further keys, at most ledger.MaxAliases; none
	Namespace  Setting[string]        // key space of several flows of a tenant
	Hash       Setting[string]        // raw
	Window     Setting[time.Duration] // whole seconds, MinWindow to MaxWindow
	TTLMax     Setting[time.Duration] // MaxWindow
	Lenient    Setting[bool]          // false
	WithDate   Setting[bool]          // put the interchange date into the key
	Durability Setting[string]        // strict
	Payload    Setting[string]        // full

	// What extractors take for an identity (msgkey.Options).
	Sellers      Setting[[]string] // kinds of seller identifiers, in order
	Scheme       Setting[string]   // format
	CXMLOrder    Setting[bool]     // false
	MessageLevel Setting[string]   // interchange
	JSONPointers Setting[[]string] // RFC 6901
	FilePattern  Setting[string]   // RE2 with capture groups
	OFTP1        Setting[bool]     // false
}

// Builtin is what follows the user's rules unless builtin_rules is false.
func Builtin() []Rule {
	windows := []struct {
		key    string
		window time.Duration
	}{
		{"as2:*", 7 * setting.Day},
		{"as4:*", 30 * setting.Day},
		{"edifact:*", 60 * setting.Day},
		{"x12:*", 60 * setting.Day},
		{"{ubl,cii,inv}:*", 90 * setting.Day},
	}
	chains := []struct {
		match               string
		extractors, aliases []string
	}{
		{"*:as2*", []string{msgkey.Header, msgkey.EDIFACT, msgkey.X12, msgkey.UBL, msgkey.CII, msgkey.AS2}, nil},
		{"*:as4*", []string{msgkey.Header, msgkey.UBL, msgkey.CII, msgkey.SBDH, msgkey.AS4}, nil},
		{"*:peppol*", []string{msgkey.Header, msgkey.UBL, msgkey.CII, msgkey.SBDH}, []string{msgkey.SBDH}},
	}
	rules := make([]Rule, 0, len(windows)+len(chains)+1)
	for _, w := range windows {
		rules = append(rules, Rule{Match: builtin("*:*"), Key: builtin(w.key), Window: builtin(w.window)})
	}
	for _, c := range chains {
		r := Rule{Match: builtin(c.match), Extractors: builtin(c.extractors)}
		if c.aliases != nil {
			r.Aliases = builtin(c.aliases)
		}
		rules = append(rules, r)
	}
	last := defaults()
	last.Match = builtin("*:*")
	rules = append(rules, last)
	for i := range rules {
		rules[i].At = builtinPlace()
	}
	return rules
}

// defaults is the rule behind all rules, which sets everything that must be.
func defaults() Rule {
	return Rule{
		At:         builtinPlace(),
		Mode:       builtin(ModeEnforce),
		Entry:      builtin("auto"),
		Extractors: builtin([]string{msgkey.Header, msgkey.Auto}),
		Aliases:    builtin([]string(nil)),
		Namespace:  builtin(""),
		Hash:       builtin("raw"),
		Window:     builtin(DefaultWindow),
		TTLMax:     builtin(MaxWindow),
		Lenient:    builtin(false),
		WithDate:   builtin(false),
		Durability: builtin("strict"),
		Payload:    builtin(PayloadFull),

		Sellers:      builtin(sellers()),
		Scheme:       builtin(SchemeFormat),
		CXMLOrder:    builtin(false),
		MessageLevel: builtin(LevelInterchange),
		JSONPointers: builtin([]string(nil)),
		FilePattern:  builtin(""),
		OFTP1:        builtin(false),
	}
}

func builtinPlace() setting.Place { return setting.Place{Name: "built in"} }

func builtin[T any](value T) Setting[T] {
	return Setting[T]{Value: value, Set: true, At: builtinPlace()}
}
