// Package acl names rights on Kafka: which ones the program needs, how a missing
// one is told, and the kafka-acls.sh line that grants it. It asks nobody.
package acl

import (
	"fmt"
	"strings"
)

// Resource is a kind of thing that Kafka guards, spelled as the option of
// kafka-acls.sh.
type Resource string

// The kinds that the filter deals with.
const (
	Topic           Resource = "topic"
	Group           Resource = "group"
	TransactionalID Resource = "transactional-id"
)

// Operation is spelled as kafka-acls.sh takes it. Read and Write bring Describe
// with them (KIP-253), so no table asks for it beside them.
type Operation string

// The operations that the filter and its commands need.
const (
	Read            Operation = "Read"
	Write           Operation = "Write"
	Create          Operation = "Create"
	Describe        Operation = "Describe"
	DescribeConfigs Operation = "DescribeConfigs"
)

// Name is a resource's name, or the beginning of many.
type Name struct {
	Text     string
	Prefixed bool // Text is a prefix (KIP-290)
}

// Named is exactly one resource.
func Named(text string) Name { return Name{Text: text} }

// Prefix is every resource whose name begins so.
func Prefix(text string) Name { return Name{Text: text, Prefixed: true} }

// Right is one operation on a resource.
type Right struct {
	Resource  Resource
	Name      Name
	Operation Operation
}

func (r Right) String() string {
	name := r.Name.Text
	if r.Name.Prefixed {
		name += "*"
	}
	return fmt.Sprintf("%s on %s %s", r.Operation.name(), strings.ReplaceAll(string(r.Resource), "-", " "), name)
}

// name is how Kafka's own documents and logs write it.
func (o Operation) name() string {
	if o == DescribeConfigs {
		return "DESCRIBE_CONFIGS"
	}
	return strings.ToUpper(string(o))
}

// Rights of one principal.
type Rights []Right

// String lists them in a sentence.
func (rs Rights) String() string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// Principal is who is granted something, and by way of which broker.
type Principal struct {
	Name      string // User:dedup; "" where only the broker knows it
	Bootstrap string // host:port,…
}

// unknownPrincipal stands in a command for a name that the person who runs it
// has to fill in: of a client certificate or a token only the broker tells it.
const unknownPrincipal = "User:NAME"

// Commands are the kafka-acls.sh lines that grant the rights, one per resource,
// in the order of the first right on each.
func (p Principal) Commands(rs Rights) []string {
	type key struct {
		resource Resource
		name     Name
	}
	var order []key
	operations := map[key][]Operation{}
	for _, r := range rs {
		k := key{r.Resource, r.Name}
		if operations[k] == nil {
			order = append(order, k)
		}
		operations[k] = append(operations[k], r.Operation)
	}
	lines := make([]string, len(order))
	for i, k := range order {
		lines[i] = p.command(k.resource, k.name, operations[k])
	}
	return lines
}

func (p Principal) command(resource Resource, name Name, operations []Operation) string {
	who := p.Name
	if who == "" {
		who = unknownPrincipal
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kafka-acls.sh --bootstrap-server %s --add --allow-principal %s", p.Bootstrap, shell(who))
	for _, o := range operations {
		fmt.Fprintf(&b, " --operation %s", o)
	}
	fmt.Fprintf(&b, " --%s %s", resource, shell(name.Text))
	if name.Prefixed {
		b.WriteString(" --resource-pattern-type prefixed")
	}
	return b.String()
}

// shell quotes what a shell would take apart: a certificate's name has spaces.
func shell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// MissingError says which rights a principal lacks, all at once, and how to
// grant them.
type MissingError struct {
	Principal Principal
	Rights    Rights
}

func (e *MissingError) Error() string {
	who := "this client's Kafka principal"
	if e.Principal.Name != "" {
		who = "Kafka principal " + e.Principal.Name
	}
	return fmt.Sprintf("%s lacks %s; grant: %s", who, e.Rights, strings.Join(e.Principal.Commands(e.Rights), " && "))
}
