package topics_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"dedupledger/topics"
)

func defaults() topics.Names {
	return topics.Names{
		Raw: `^raw-ingest\.(.+)$`, Operator: "dedup-operator", Clean: "clean.$1",
		Duplicates: "duplicates", DeadLetter: "dead-letter",
	}
}

func newRouter(t testing.TB) *topics.Router {
	t.Helper()
	r, err := topics.New(defaults())
	require.NoError(t, err)
	return r
}

func TestRouterDefaults(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	clean, err := r.Clean("raw-ingest.as2")
	require.NoError(t, err)
	require.Equal(t, "clean.as2", clean)
	out, err := r.Outputs("raw-ingest.as2.eu")
	require.NoError(t, err)
	require.Equal(t, []string{"clean.as2.eu", "duplicates", "dead-letter"}, out)
	require.True(t, r.IsRaw("raw-ingest.x"))
	for _, no := range []string{"clean.x", "raw-ingest.", "xraw-ingest.a", "raw-ingestXa", "duplicates", "dead-letter", "dedup-operator", "__consumer_offsets"} {
		require.False(t, r.IsRaw(no), no)
		_, err := r.Clean(no)
		require.ErrorIs(t, err, topics.ErrRoute)
	}
	_, err = r.Clean("raw-ingest." + strings.Repeat("x", 250))
	require.ErrorIs(t, err, topics.ErrRoute, "the clean name would be too long")
}

func TestNewAccepts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, clean, topic, want string }{
		{`^(raw|in)\.(.+)$`, "clean.$2", "in.a", "clean.a"},
		{`^(.+)\.raw$`, "$1.clean", "a.raw", "a.clean"},
		{`^(?P<hub>[a-z]+)-raw-(.+)$`, "${hub}-clean-$2", "eu-raw-a", "eu-clean-a"},
		{`^raw-ingest\.(.+)$`, "clean", "raw-ingest.a", "clean"},
		{`^raw\.([0-9]+)$`, "raw.c$1", "raw.7", "raw.c7"},
		{`^raw$`, "clean", "raw", "clean"},
		{`^(?i)RAW\.(.+)$`, "clean.$1", "Raw.a", "clean.a"},
	} {
		n := defaults()
		n.Raw, n.Clean = c.raw, c.clean
		r, err := topics.New(n)
		require.NoError(t, err, c.raw)
		got, err := r.Clean(c.topic)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	with := func(change func(*topics.Names)) topics.Names {
		n := defaults()
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		names topics.Names
		field string
		says  string
	}{
		"no anchors":          {with(func(n *topics.Names) { n.Raw = `raw-ingest\.(.+)` }), "topics.raw", "anchored"},
		"no end":              {with(func(n *topics.Names) { n.Raw = `^raw-ingest\.(.+)` }), "topics.raw", "anchored"},
		"no begin":            {with(func(n *topics.Names) { n.Raw = `raw-ingest\.(.+)$` }), "topics.raw", "anchored"},
		"escaped dollar":      {with(func(n *topics.Names) { n.Raw = `^raw-ingest\.(.+)\$` }), "topics.raw", "anchored"},
		"alternation":         {with(func(n *topics.Names) { n.Raw = `^raw\.(.+)|in\.(.+)$` }), "topics.raw", "anchored"},
		"lines":               {with(func(n *topics.Names) { n.Raw = `(?m)^raw\.(.+)$` }), "topics.raw", "anchored"},
		"empty":               {with(func(n *topics.Names) { n.Raw = `` }), "topics.raw", "anchored"},
		"no expression":       {with(func(n *topics.Names) { n.Raw = `^raw(.+$` }), "topics.raw", "RE2"},
		"matches duplicates":  {with(func(n *topics.Names) { n.Raw = `^(.+)s$` }), "topics.raw", `topics.duplicates "duplicates"`},
		"matches dead":        {with(func(n *topics.Names) { n.Raw = `^dead-(.+)$` }), "topics.raw", "topics.dead_letter"},
		"matches operator":    {with(func(n *topics.Names) { n.Raw = `^dedup-(.+)$` }), "topics.raw", "topics.operator"},
		"loop":                {with(func(n *topics.Names) { n.Clean = "raw-ingest.clean.$1" }), "topics.clean", "read its own output"},
		"loop by group":       {with(func(n *topics.Names) { n.Clean = "$1" }), "topics.clean", "read its own output"},
		"loop by pattern":     {with(func(n *topics.Names) { n.Raw = `^(.*)raw(.*)$`; n.Clean = "${1}clean$2" }), "topics.clean", "read its own output"},
		"clean is dead":       {with(func(n *topics.Names) { n.Clean = "dead-letter" }), "topics.clean", "topics.dead_letter"},
		"clean may be dup":    {with(func(n *topics.Names) { n.Clean = "dup$1" }), "topics.clean", "topics.duplicates"},
		"unknown group":       {with(func(n *topics.Names) { n.Clean = "clean.$2" }), "topics.clean", "$2"},
		"group name runs on":  {with(func(n *topics.Names) { n.Clean = "clean.$1_x" }), "topics.clean", "$1_x"},
		"whole match":         {with(func(n *topics.Names) { n.Clean = "clean.$0" }), "topics.clean", "$0"},
		"lone dollar":         {with(func(n *topics.Names) { n.Clean = "clean.$" }), "topics.clean", "without a group"},
		"open brace":          {with(func(n *topics.Names) { n.Clean = "clean.${1" }), "topics.clean", "${"},
		"clean by tenant":     {with(func(n *topics.Names) { n.Clean = "clean.{tenant}" }), "topics.clean", "{tenant}"},
		"clean with blank":    {with(func(n *topics.Names) { n.Clean = "clean $1" }), "topics.clean", "a-z"},
		"tenant no pattern":   {with(func(n *topics.Names) { n.TenantFromTopic = "^(" }), "topics.tenant_from_topic", "RE2"},
		"tenant not anchored": {with(func(n *topics.Names) { n.TenantFromTopic = `raw\.([^.]+)\.` }), "topics.tenant_from_topic", "begin with ^"},
		"tenant no group":     {with(func(n *topics.Names) { n.TenantFromTopic = `^raw\.` }), "topics.tenant_from_topic", "one group"},
		"tenant two groups":   {with(func(n *topics.Names) { n.TenantFromTopic = `^(raw)\.([^.]+)` }), "topics.tenant_from_topic", "one group"},
		"dup may be raw":      {with(func(n *topics.Names) { n.Duplicates = "raw-ingest.{tenant}" }), "topics.duplicates", "read its own output"},
		"dead may be raw":     {with(func(n *topics.Names) { n.DeadLetter = "{flow}.{tenant}" }), "topics.dead_letter", "read its own output"},
		"dup by group":        {with(func(n *topics.Names) { n.Raw, n.Clean, n.Duplicates = `^([a-z]+)\.(.+)$`, "C-$2", "$1.$2.x" }), "topics.duplicates", "read its own output"},
		"dup may be dead":     {with(func(n *topics.Names) { n.Duplicates, n.DeadLetter = "x.{tenant}", "x.dead" }), "topics.dead_letter", `topics.duplicates "x.{tenant}" can make too, as it could with "x.dead"`},
		"dup like dead":       {with(func(n *topics.Names) { n.Duplicates, n.DeadLetter = "x.{tenant}", "x.{tenant}.dead" }), "topics.dead_letter", "can make too"},
		"dup may be operator": {with(func(n *topics.Names) { n.Duplicates = "dedup-{tenant}" }), "topics.duplicates", `topics.operator "dedup-operator"`},
		"clean may be tenant": {with(func(n *topics.Names) { n.Clean, n.Duplicates = "hub.$1", "hub.{tenant}" }), "topics.clean", "topics.duplicates"},
		"tenant alone":        {with(func(n *topics.Names) { n.Raw, n.Duplicates = `^raw/(.+)$`, "{tenant}" }), "topics.duplicates", `could make "."`},
		"tenant twice":        {with(func(n *topics.Names) { n.Duplicates = "d.{tenant}.{tenant}" }), "topics.duplicates", "twice"},
		"tenant in between":   {with(func(n *topics.Names) { n.Duplicates = "d.$1.{tenant}.{flow}" }), "topics.duplicates", "both sides"},
		"tenant beside flow":  {with(func(n *topics.Names) { n.Duplicates = "d.{tenant}{flow}" }), "topics.duplicates", "beside {tenant}"},
		"flow beside tenant":  {with(func(n *topics.Names) { n.Duplicates = "d.{flow}{tenant}" }), "topics.duplicates", "beside {tenant}"},
		"other variable":      {with(func(n *topics.Names) { n.Duplicates = "d.{scope}" }), "topics.duplicates", "{tenant} and {flow}"},
		"unclosed":            {with(func(n *topics.Names) { n.Duplicates = "d.{tenant" }), "topics.duplicates", "{tenant} and {flow}"},
		"no such group":       {with(func(n *topics.Names) { n.DeadLetter = "dead-letter.$2" }), "topics.dead_letter", "$2"},
		"too long":            {with(func(n *topics.Names) { n.Duplicates = strings.Repeat("d", 170) + ".{tenant}.{flow}" }), "topics.duplicates", "up to 252 characters"},
		"no name":             {with(func(n *topics.Names) { n.Duplicates = "" }), "topics.duplicates", "must be a topic name"},
		"dots":                {with(func(n *topics.Names) { n.Operator = ".." }), "topics.operator", "1 to 249"},
		"twice":               {with(func(n *topics.Names) { n.DeadLetter = "duplicates" }), "topics.dead_letter", "must differ from topics.duplicates"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := topics.New(c.names)
			require.Error(t, err)
			var fault *topics.NameError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.field, fault.Field)
			require.Contains(t, fault.Error(), c.says)
		})
	}
	n := defaults()
	n.Duplicates, n.DeadLetter, n.Raw = "a b", "", "x"
	_, err := topics.New(n)
	for _, field := range []string{"topics.duplicates", "topics.dead_letter", "topics.raw"} {
		require.ErrorContains(t, err, field, "every fault at once")
	}
}

// Whatever pattern and template New lets through, no name goes round: checked
// with random patterns and the names they match.
func TestNoOutputIsRaw(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 14))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	accepted, refused := 0, 0
	names := namesOver("abc", 4)
	for range 600 {
		n := defaults()
		n.Raw = "^" + pick("", "a", "ab", "(?:a|b)", "b*") + pick("(.+)", "(.*)", "([ab]+)", "(a|bb)", "(a.)") + pick("", "b", "a?", "bb") + "$"
		n.Clean = pick("", "a", "b", "ab", "c") + "${1}" + pick("", "a", "b", "c")
		r, err := topics.New(n)
		if err != nil {
			refused++
			continue
		}
		accepted++
		re := regexp.MustCompile(n.Raw)
		for _, name := range names {
			if m := re.FindStringSubmatchIndex(name); m != nil {
				clean := string(re.ExpandString(nil, n.Clean, name, m))
				require.False(t, re.MatchString(clean), "%s -> %s: %s of %s", n.Raw, n.Clean, clean, name)
				_, err := r.Clean(name)
				require.NoError(t, err)
			}
		}
	}
	require.Positive(t, accepted)
	require.Positive(t, refused)
}

// namesOver is every text of 1 to n letters.
func namesOver(letters string, n int) []string {
	var all []string
	last := []string{""}
	for range n {
		var next []string
		for _, head := range last {
			for _, c := range letters {
				next = append(next, head+string(c))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}
