package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const leaveTimeout = 5 * time.Second

// leaves tells whether the end of stop is that of this process's part in the
// group. A slot that went to another process is left to it.
func (p *Processor) leaves(stop context.Context) bool {
	if !p.cfg.Static || errors.Is(context.Cause(stop), errMoved) {
		return false
	}
	select {
	case <-p.cfg.Leaving:
		return true
	default:
		return false
	}
}

// leaveGroup takes a static member out of the group, so that its partitions move
// at once. A failure costs the session timeout and nothing else.
func (p *Processor) leaveGroup(ctx context.Context, c *client, i int) {
	ctx, cancel := context.WithTimeoutCause(ctx, leaveTimeout, errors.New("no answer within "+leaveTimeout.String()))
	defer cancel()
	id := p.transactionalID(i)
	p.at("group to be left")
	if err := c.leave(ctx, p.cfg.Group, id); err != nil {
		p.cfg.Log.Warn("leaving the group failed: the partitions move after the session timeout", "session", i, "instance", id, "error", err)
		return
	}
	p.at("group left")
	p.cfg.Log.Info("left the group", "session", i, "instance", id)
}

// leave ends the heartbeats first, or the client would take the answer to the
// next one for a reason to join again. The client itself never takes a static
// member out. The member id is sent beside the name (KIP-345): a younger process
// that has the name by now is not thrown out.
func (c *client) leave(ctx context.Context, group, instance string) error {
	cl := c.gts.Client()
	member, _ := cl.GroupMetadata()
	c.gts.AllowRebalance()
	if err := cl.LeaveGroupContext(ctx); err != nil {
		return fmt.Errorf("ending the membership: %w", err)
	}
	if member == "" {
		return nil // never joined
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = group, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID, m.InstanceID, m.Reason = member, &instance, new("this process does not come back")
	req.Members = append(req.Members, m)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("leaving the group: %w", err)
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	for _, m := range resp.Members {
		err = errors.Join(err, kerr.ErrorForCode(m.ErrorCode))
	}
	if errors.Is(err, kerr.UnknownMemberID) {
		return nil // out of it already
	}
	return err
}
