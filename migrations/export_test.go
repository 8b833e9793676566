package migrations

// Of the plan, for its tests.
var (
	Statements = statements
	Sources    = sources
)

// AfterStatement is what is run at the end of every Up.
func AfterStatement() (Statement, error) {
	s, _, err := annotated(after)
	return s, err
}
