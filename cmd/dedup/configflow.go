package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dedupledger/internal/rules"
	"dedupledger/topics"
	"dedupledger/topics/msgkey"
)

func newConfigFlow(p *program) *cobra.Command {
	key := ""
	c := &cobra.Command{
		Use:   "flow [flags] TENANT:FLOW",
		Short: "which rule gives each setting of a flow",
		Long: "Prints each setting of a flow with its value and the rule it comes from, by file and line. For each\n" +
			"setting the first rule that fits and sets it wins; a rule with `key` fits some keys only, so there\n" +
			"may be several lines of a setting, in order. With --key there is one each, for that key.",
		Example: "  dedup config flow acme:as2 -c /etc/dedup.yaml\n" +
			"  dedup config flow acme:as2 --key 'edifact:4098765000014:14/4012345000023:14/77001'",
		Args: arguments(oneFlow),
		RunE: func(c *cobra.Command, args []string) error {
			asked := ""
			if c.Flags().Changed("key") {
				canonical, code := msgkey.Explicit([]byte(key))
				if code != "" {
					return usage(c, fmt.Errorf("--key %q: no key (%s)", key, code))
				}
				asked = canonical
			}
			e, err := p.explain()
			if err != nil {
				return err
			}
			settings, known := e.Set.Explain(args[0], asked)
			if !known {
				return fmt.Errorf("%s: no rule speaks of this flow and builtin_rules is false: its records are INVALID %s", args[0], rules.FlowUnknown)
			}
			answer := flowOf(e.Set, args[0], asked, settings)
			return p.print(answer, answer.print)
		},
	}
	c.Flags().StringVar(&key, "key", "", "a dedup `KEY`, without the date of with_date; what is no key of a known form counts as hdr:KEY")
	return c
}

func oneFlow(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d flows: name one TENANT:FLOW", len(args))
	}
	if _, err := topics.ParseScope(args[0]); err != nil {
		return fmt.Errorf("%q: write TENANT:FLOW, each 1 to 40 of letters, digits, . _ -", args[0])
	}
	return nil
}

// explainedFlow is the answer of `dedup config flow`.
type explainedFlow struct {
	Scope       string             `json:"scope"`
	Key         string             `json:"key,omitempty"`
	LedgerScope string             `json:"ledgerScope"` // where its keys are unique, unless a rule for some keys says otherwise
	Settings    []explainedSetting `json:"settings"`
}

type explainedSetting struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	Keys  string `json:"keys"` // glob; * for all that are left
	From  string `json:"from"`
	Match string `json:"match,omitempty"`
	Rule  string `json:"rule,omitempty"` // flows[4]
}

func flowOf(set *rules.Set, scope, key string, settings []rules.Explained) explainedFlow {
	f := explainedFlow{Scope: scope, Key: key}
	if flow, known := set.Flow(scope); known {
		f.LedgerScope = flow.Decide(key).LedgerScope
	}
	for _, s := range settings {
		for _, c := range s.Choices {
			e := explainedSetting{
				Name: s.Name, Value: plainValue(c.Shape, c.Value, c.Items, nil), Keys: "*",
				From: c.At.String(), Match: c.Rule.Match.Value, Rule: c.Rule.Path,
			}
			if c.Rule.Key.Set {
				e.Keys = c.Rule.Key.Value
			}
			f.Settings = append(f.Settings, e)
		}
	}
	return f
}

func (f explainedFlow) print(w io.Writer) error {
	head := f.Scope
	if f.Key != "" {
		head += ", key " + f.Key
	}
	_, _ = fmt.Fprintf(w, "%s: keys are unique in ledger scope %s\n\n", head, f.LedgerScope) // Flush has the error
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "setting\tvalue\tfor keys\tfrom\trule") // likewise
	for _, s := range f.Settings {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", s.Name, valueText(s.Value), s.Keys, s.From, s.ruleText())
	}
	return t.Flush() //nolint:wrapcheck // wrapped by print
}

// ruleText names the rule: its place in flows, and what it matches.
func (s explainedSetting) ruleText() string {
	return strings.TrimSpace(s.Rule + " " + s.Match)
}

func valueText(value any) string {
	text, isText := value.(string)
	if items, isList := value.([]string); isList {
		text = strings.Join(items, ", ")
	} else if !isText {
		text = fmt.Sprint(value)
	}
	if text == "" {
		return "none"
	}
	return text
}
