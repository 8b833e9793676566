package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	cardsPage = "docs/field-faults.md"
	lastCard  = 25
)

var (
	cardRow  = regexp.MustCompile(`^\| (F\d\d) \|`)
	cardName = regexp.MustCompile(`\bF[0-2]\d\b`)
	testName = regexp.MustCompile("`(Test[A-Z]\\w*)`")
)

// TestFaultCards: the page has each card, each test that it names is there and
// says in its comment which card it is of, and each test that says so is named.
func TestFaultCards(t *testing.T) {
	t.Parallel()
	named := map[string][]string{} // by card: tests of the page
	for _, d := range documents(t) {
		if d.name == cardsPage {
			named = cardsOf(d)
		}
	}
	require.Empty(t, cardFaults(named, cardTests(t)))
}

// TestFaultCardsBite is the negative control.
func TestFaultCardsBite(t *testing.T) {
	t.Parallel()
	named, tests := map[string][]string{}, map[string][]string{"TestOld": {"F07"}, "TestMute": nil}
	for n := 1; n < lastCard; n++ {
		named[fmt.Sprintf("F%02d", n)] = nil
	}
	named["F03"] = []string{"TestGone", "TestMute"}
	require.Len(t, cardFaults(named, tests), 4, "no F25, a test that is gone, one that says nothing, one that the page does not name")
}

// cardsOf are the tests that the rows of a page name.
func cardsOf(d document) map[string][]string {
	named := map[string][]string{}
	for _, l := range d.lines {
		row := cardRow.FindStringSubmatch(l.text)
		if row == nil {
			continue
		}
		named[row[1]] = []string{}
		for _, m := range testName.FindAllStringSubmatch(l.text, -1) {
			named[row[1]] = append(named[row[1]], m[1])
		}
	}
	return named
}

// cardTests are the tests of the tree, each with the cards of its comment or name.
func cardTests(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, f := range treeFiles(t, "_test.go") {
		if strings.HasPrefix(f.path, "internal/house/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Base(f.path), f.text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				said := fn.Doc.Text()
				tests[fn.Name.Name] = append(tests[fn.Name.Name], cardName.FindAllString(said, -1)...)
			}
		}
	}
	return tests
}

func cardFaults(named, tests map[string][]string) (faults []string) {
	for n := 1; n <= lastCard; n++ {
		if _, ok := named[fmt.Sprintf("F%02d", n)]; !ok {
			faults = append(faults, fmt.Sprintf("%s has no row F%02d", cardsPage, n))
		}
	}
	for card, of := range named {
		for _, test := range of {
			switch said, ok := tests[test]; {
			case !ok:
				faults = append(faults, fmt.Sprintf("%s names %s at %s, which is no test", cardsPage, test, card))
			case !slices.Contains(said, card):
				faults = append(faults, fmt.Sprintf("%s is named at %s and does not say so in its comment", test, card))
			}
		}
	}
	for test, said := range tests {
		for _, card := range said {
			if !slices.Contains(named[card], test) {
				faults = append(faults, fmt.Sprintf("%s says that it is of %s, whose row in %s does not name it", test, card, cardsPage))
			}
		}
	}
	return faults
}
