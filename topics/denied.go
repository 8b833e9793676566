package topics

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/topics/acl"
)

// DeniedError says which rights on a raw topic and its outputs are missing.
type DeniedError struct {
	Raw    string
	Rights acl.Rights
	// Unread says that the raw topic may not be read, or one of the topics not
	// even be seen: then none of its partitions can be worked on. Without it,
	// those go on whose records need no right that is missing.
	Unread bool
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("raw topic %q: missing right: %s", e.Raw, e.Rights)
}

func (l *Layout) denied(raw string, outputs []string) *DeniedError {
	e := &DeniedError{Raw: raw, Rights: l.Lacks(acl.Raw(acl.Named(raw)))}
	e.Unread = len(e.Rights) > 0
	for _, name := range outputs {
		e.Rights = append(e.Rights, l.Lacks(acl.Output(acl.Named(name)))...)
		e.Unread = e.Unread || l.hidden[name]
	}
	if len(e.Rights) == 0 {
		return nil
	}
	return e
}

// Hidden reports whether a topic that was asked for may not be seen. Whether it
// is there Kafka does not tell then.
func (l *Layout) Hidden(topic string) bool { return l.hidden[topic] }

// Lacks are those of the rights that the brokers deny (KIP-430). A topic that is
// not there, and a broker that does not tell, deny nothing.
func (l *Layout) Lacks(rights acl.Rights) (missing acl.Rights) {
	for _, r := range rights {
		info, there := l.topics[r.Name.Text]
		switch {
		case l.hidden[r.Name.Text]:
			missing = append(missing, r)
		case there && len(info.allowed) > 0 && !slices.Contains(info.allowed, operation(r.Operation)):
			missing = append(missing, r)
		}
	}
	return missing
}

// lacksCompare are the rights that Ensure misses to look at topics. To see one
// that is not there Describe is needed, too: without it Kafka does not tell the
// two apart.
func (l *Layout) lacksCompare(names []string) (missing acl.Rights) {
	for _, name := range names {
		o := acl.DescribeConfigs
		if l.hidden[name] {
			o = acl.Describe
		}
		missing = append(missing, l.Lacks(acl.Rights{{Resource: acl.Topic, Name: acl.Named(name), Operation: o}})...)
	}
	return missing
}

func (p *Plan) principal() acl.Principal {
	return acl.Principal{Name: p.Principal, Bootstrap: p.Bootstrap}
}

func operation(o acl.Operation) kadm.ACLOperation {
	switch o {
	case acl.Read:
		return kmsg.ACLOperationRead
	case acl.Write:
		return kmsg.ACLOperationWrite
	case acl.Create:
		return kmsg.ACLOperationCreate
	case acl.Describe:
		return kmsg.ACLOperationDescribe
	case acl.DescribeConfigs:
		return kmsg.ACLOperationDescribeConfigs
	}
	return kmsg.ACLOperationUnknown
}
