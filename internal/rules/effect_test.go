package rules

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
	"dedupledger/topics"
)

// TestLenient: only the flow that says so takes a file without its trailer, and it
// then has the key of the complete one.
func TestLenient(t *testing.T) {
	t.Parallel()
	k := NewKeyer(newSet(t, true, "match=acme:loose lenient=true", "match=acme:loose-not lenient=false", "match=acme:loose* lenient=true"))
	cut, _, _ := strings.Cut(aliasedOrder, "UNZ")
	for flow, want := range map[string]ledger.Keyed{
		"loose":     {Key: ledger.Key{Scope: "acme:loose", Key: "edifact:A/B/77001", Window: 60 * 24 * 3600e9}, HashMode: "raw"},
		"loose-not": {Code: "edifact.no_unz", HashMode: "raw"},
		"strict":    {Code: "edifact.no_unz", HashMode: "raw"},
	} {
		scope := topics.Scope{Tenant: "acme", Flow: flow}
		require.Equal(t, want, k.Key(scope, []byte(cut), nil), flow)
		require.Equal(t, "edifact:A/B/77001", k.Key(scope, []byte(aliasedOrder), nil).Key.Key)
	}
}

// optionVector is a message that has another key under an option, which stands in a header.
type optionVector struct {
	Format, Name string
	Payload      []byte            `json:"payload_base64"`
	Headers      map[string]string `json:"headers"`
	Key          string            `json:"expect_key"`
}

func optionVectors(t *testing.T) (all []optionVector) {
	t.Helper()
	for _, name := range []string{"more-keys", "more-head-keys", "message-keys"} {
		f, err := os.Open("../../topics/msgkey/testdata/" + name + ".jsonl")
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var v optionVector
			require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
			if option, _ := v.option(); option != "" && v.Key != "" {
				all = append(all, v)
			}
		}
		require.NoError(t, lines.Err())
	}
	return all
}

// option is the setting of a rule that the vector is about, as newSet reads it.
func (v *optionVector) option() (name, text string) {
	for header, value := range v.Headers {
		switch header {
		case "x-dedup-lenient":
			return "lenient", "lenient=true"
		case "x-dedup-sellers":
			return "sellers", "sellers=[" + value + "]"
		case "x-dedup-scheme":
			return "scheme", "scheme=" + value
		case "x-dedup-cxml-order":
			return "cxml_order", "cxml_order=true"
		case "x-dedup-message-level":
			return "message_level", "message_level=" + value
		case "x-dedup-pointers":
			return "json_pointers", "json_pointers=[" + value + "]"
		case "x-dedup-file-pattern":
			return "file_pattern", "file_pattern=" + value
		case "x-dedup-oftp1":
			return "oftp1", "oftp1=true"
		}
	}
	return "", ""
}

// TestEachOptionMakesKeys: what a rule says of an identity is what the flow's chain and
// its aliases make, and a flow of other rules makes another key or none.
func TestEachOptionMakesKeys(t *testing.T) {
	t.Parallel()
	changed := map[string]int{}
	for _, v := range optionVectors(t) {
		name, text := v.option()
		chain := "[" + v.Format + "]"
		without := " extractors=" + chain
		if name == "json_pointers" { // json cannot do without any
			without += " json_pointers=[/of/another/flow]"
		}
		k := NewKeyer(newSet(t, false, "match=acme:with "+text+" extractors="+chain,
			"match=acme:alias "+text+" extractors=[header] aliases="+chain, "match=acme:without"+without))
		key := func(flow string) ledger.Keyed {
			return k.Key(topics.Scope{Tenant: "acme", Flow: flow}, v.Payload, toldBy(v.Headers))
		}
		require.Equal(t, v.Key, key("with").Key.Key, v.Name)
		if key("without").Key.Key != v.Key {
			changed[name]++
		}
		v.Headers["dedup-key"] = "x"
		require.Equal(t, []string{v.Key}, key("alias").Aliases, v.Name)
	}
	options := slices.DeleteFunc(makesKeys(), func(name string) bool {
		return slices.Contains([]string{"extractors", "aliases", "namespace", "with_date"}, name)
	})
	require.ElementsMatch(t, options, slices.Collect(maps.Keys(changed)), "an option without a message that it gives another key")
}

// TestInvoicesOfOneScheme: whatever syntax an invoice has and however its key begins,
// it is remembered for the 90 days of invoices.
func TestInvoicesOfOneScheme(t *testing.T) {
	t.Parallel()
	k := NewKeyer(newSet(t, true, "match=acme:shared scheme=inv"))
	schemes := map[string]int{}
	for _, v := range optionVectors(t) {
		if name, _ := v.option(); name != "scheme" {
			continue
		}
		for _, flow := range []string{"shared", "each"} {
			keyed := k.Key(topics.Scope{Tenant: "acme", Flow: flow}, v.Payload, nil)
			require.Equal(t, 90*setting.Day, keyed.Key.Window, "%s: %s", v.Name, keyed.Key.Key)
			scheme, _, _ := strings.Cut(keyed.Key.Key, ":")
			schemes[scheme]++
		}
	}
	require.ElementsMatch(t, []string{"inv", "ubl", "cii"}, slices.Collect(maps.Keys(schemes)))
}
