package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

const areaGroup = "group"

// Group is the filter's consumer group.
type Group struct {
	Name, State string // State as Kafka spells it; Dead: it was never there, or is gone
	Members     []Member
}

// Member of the group.
type Member struct{ Client, Instance, Host string }

// AskGroup describes the group.
func AskGroup(ctx context.Context, adm *kadm.Client, name string) (Group, error) {
	all, err := adm.DescribeGroups(ctx, name)
	if err != nil {
		return Group{}, fmt.Errorf("describing group %s: %w", name, err)
	}
	d, ok := all[name]
	if errors.Is(d.Err, kerr.GroupIDNotFound) {
		return Group{Name: name, State: "Dead"}, nil
	}
	if !ok || d.Err != nil {
		return Group{}, fmt.Errorf("describing group %s: %w", name, d.Err)
	}
	g := Group{Name: name, State: d.State}
	for _, m := range d.Members {
		member := Member{Client: m.ClientID, Host: m.ClientHost}
		if m.InstanceID != nil {
			member.Instance = *m.InstanceID
		}
		g.Members = append(g.Members, member)
	}
	return g, nil
}

// clientOfFilter is what the client ids of the filter's sessions begin with.
const clientOfFilter = "dedup-ledger-"

// Judge is pure.
func (g *Group) Judge() (fs Findings) {
	for _, m := range g.Members {
		if !strings.HasPrefix(m.Client, clientOfFilter) {
			fs.add(Fail, areaGroup, "give that client a group of its own", "%s has a member that is no filter: client %q at %s. It is given partitions, and nobody filters them", g.Name, m.Client, strings.TrimPrefix(m.Host, "/"))
		}
	}
	switch g.State {
	case "PreparingRebalance", "CompletingRebalance":
		fs.add(Warn, areaGroup, "run it again in a moment", "%s is rebalancing (%s), %s", g.Name, g.State, counted(len(g.Members), "member"))
	case "Empty", "Dead":
		fs.add(Warn, areaGroup, "dedup run", "%s has no member: no filter is running, raw topics pile up", g.Name)
	}
	return fs.orOK(areaGroup, "%s is %s, %s", g.Name, strings.ToLower(g.State), counted(len(g.Members), "session"))
}
