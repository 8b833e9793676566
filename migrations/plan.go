package migrations

import (
	"context"
	"fmt"
	"io"
)

// planHead stands before the plan: what runs it by another way than Up leaves a
// schema that this program takes for none.
const planHead = `-- To be read. Only ` + "`dedup migrate up`" + ` also records in dedup_migration what it applied.
-- Each migration is one transaction: its locks are held to its end. What a statement does to tables that are in use
-- stands above it.
`

// Planned is one migration that Up would run.
type Planned struct {
	Name       string
	Statements []Statement
}

// afterName stands in a plan for what is run at the end of every Up.
const afterName = "after every run"

// Plan is what Up would run, in order. It runs nothing.
func Plan(ctx context.Context, url string) ([]Planned, error) {
	states, err := Status(ctx, url)
	if err != nil {
		return nil, err
	}
	var all []Planned
	for _, s := range states {
		if s.Applied {
			continue
		}
		parts, err := statements(s.Source)
		if err != nil {
			return nil, err
		}
		all = append(all, Planned{s.Name, parts})
	}
	last, _, err := annotated(after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", afterName, err)
	}
	return append(all, Planned{afterName, []Statement{last}}), nil
}

// WritePlan writes a plan as SQL, each statement under what it does to tables.
func WritePlan(w io.Writer, planned []Planned) error {
	if _, err := io.WriteString(w, planHead); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	for _, p := range planned {
		if _, err := fmt.Fprintf(w, "\n-- %s\n", p.Name); err != nil {
			return fmt.Errorf("writing the plan: %w", err)
		}
		for _, s := range p.Statements {
			if _, err := fmt.Fprintf(w, "\n-- >> %s\n%s\n", s.Says(), s.SQL); err != nil {
				return fmt.Errorf("writing the plan: %w", err)
			}
		}
	}
	return nil
}
