package migrations

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Statement is one statement of a plan and what it does to tables that are in
// use while it runs.
type Statement struct {
	SQL      string  // with the comments in front of it
	Locks    []Lock  // stronger than those of reading
	Scans    []Table // read from end to end
	Rewrites []Table // written anew
}

// Table is a table's name; of months that of the table they belong to.
type Table = string

// Lock is the strongest lock on a table. It is held to the transaction's end.
type Lock struct {
	Table Table
	Mode  string // as PostgreSQL's documentation names it: SHARE UPDATE EXCLUSIVE
}

// blocks says who waits for the lock.
func (l Lock) blocks() string {
	switch l.Mode {
	case "ACCESS EXCLUSIVE":
		return "reading and writing wait"
	case "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE":
		return "writing waits"
	default:
		return "reading and writing go on"
	}
}

// Says is what a person reads above the statement.
func (s Statement) Says() string {
	var says []string
	for _, l := range s.Locks {
		says = append(says, fmt.Sprintf("locks %s: %s (%s)", l.Table, l.Mode, l.blocks()))
	}
	if len(s.Scans) > 0 {
		says = append(says, "scans "+strings.Join(s.Scans, ", "))
	}
	if len(s.Rewrites) > 0 {
		says = append(says, "rewrites "+strings.Join(s.Rewrites, ", "))
	}
	if len(says) == 0 {
		return "locks, scans and rewrites no table that is in use"
	}
	return strings.Join(says, "; ")
}

// statements takes a migration apart. What a statement does to tables is said
// beside it, in comments of the form
//
//	-- plan: locks dedup_ledger SHARE UPDATE EXCLUSIVE
//	-- plan: scans dedup_ledger
//	-- plan: rewrites dedup_ledger
//	-- plan: nothing
//
// and must be, unless it touches only what the same migration makes: nobody
// else sees that before the commit. The tests hold every word to the locks and
// scans of a real PostgreSQL.
func statements(source Source) ([]Statement, error) {
	var all []Statement
	made := map[string]bool{}
	for _, text := range split(source.SQL) {
		s, said, err := annotated(text)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", source.Name, err)
		}
		if name := maker.FindStringSubmatch(code(text)); name != nil {
			made[name[1]] = true
		}
		if !said && !slices.ContainsFunc(touched(text), func(n string) bool { return !made[n] }) {
			said = true
		}
		if !said {
			return nil, fmt.Errorf("migration %s: a statement touches what was there before, and no `-- plan:` says how: %s",
				source.Name, firstLine(code(text)))
		}
		all = append(all, s)
	}
	return all, nil
}

var (
	maker = regexp.MustCompile(`(?i)^create (?:table|view|type|function) (\w+)`)
	// later runs when it is called; of a function in SQL the body is parsed when
	// it is made, under the locks that it will take.
	later   = regexp.MustCompile(`(?is)^create (?:type\b|function\b.*\blanguage plpgsql\b)`)
	anyName = regexp.MustCompile(`\bdedup_[a-z0-9_]+`)
	plan    = regexp.MustCompile(`(?m)^-- plan: (.*)$`)
	lockOf  = regexp.MustCompile(`^locks ([a-z0-9_]+(?:, [a-z0-9_]+)*) ((?:ROW|ACCESS|SHARE|UPDATE|EXCLUSIVE| )+)$`)
	tables  = regexp.MustCompile(`^(scans|rewrites) ([a-z0-9_]+(?:, [a-z0-9_]+)*)$`)
	comment = regexp.MustCompile(`(?m)^\s*--.*$`)
	noTable = regexp.MustCompile(`'(?:[^']|'')*'|(?i:constraint|index) \w+`)
)

// touched are the names of ours that a statement works on when it is run.
func touched(text string) []string {
	sql := code(text)
	if later.MatchString(sql) {
		return nil
	}
	return anyName.FindAllString(noTable.ReplaceAllString(sql, ""), -1)
}

// code is a statement without whole-line comments.
func code(text string) string {
	return strings.TrimSpace(comment.ReplaceAllString(text, ""))
}

func firstLine(sql string) string {
	line, _, _ := strings.Cut(sql, "\n")
	return line
}

// annotated reads what is said of a statement.
func annotated(text string) (s Statement, said bool, err error) {
	s.SQL = text
	for _, m := range plan.FindAllStringSubmatch(text, -1) {
		said = true
		lock, list := lockOf.FindStringSubmatch(m[1]), tables.FindStringSubmatch(m[1])
		switch {
		case lock != nil:
			for table := range strings.SplitSeq(lock[1], ", ") {
				s.Locks = append(s.Locks, Lock{table, lock[2]})
			}
		case list != nil && list[1] == "scans":
			s.Scans = append(s.Scans, strings.Split(list[2], ", ")...)
		case list != nil:
			s.Rewrites = append(s.Rewrites, strings.Split(list[2], ", ")...)
		case m[1] != "nothing":
			return s, said, fmt.Errorf("`%s` cannot be read: locks TABLE MODE, scans TABLE, rewrites TABLE or nothing", m[0])
		}
	}
	return s, said, nil
}

const (
	statementBegin = "-- +goose StatementBegin"
	statementEnd   = "-- +goose StatementEnd"
)

// split cuts where goose does: a statement ends with the line that ends in a
// semicolon, or is all between the two marks.
func split(sql string) []string {
	var all []string
	var lines []string
	whole := false
	for line := range strings.SplitSeq(sql, "\n") {
		trimmed := strings.TrimSpace(line)
		lines = append(lines, line)
		ends := trimmed == statementEnd || !whole && strings.HasSuffix(trimmed, ";") && !strings.HasPrefix(trimmed, "--")
		switch {
		case trimmed == statementBegin:
			whole = true
		case ends:
			whole = false
			all = append(all, strings.Trim(strings.Join(lines, "\n"), "\n"))
			lines = nil
		}
	}
	if rest := strings.Join(lines, "\n"); code(rest) != "" {
		all = append(all, rest)
	}
	return all
}
