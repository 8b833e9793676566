package devservices

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dedupledger/topics/acl"
)

// Users of the listener RESTRICTED that a broker of ours has beside PLAINTEXT
// where KafkaOptions.Restricted is set: SASL_PLAINTEXT with PLAIN. They may do
// what they are granted and nothing else; on PLAINTEXT everybody is the super
// user ANONYMOUS, so that tests look on unhindered.
const (
	UserFilter = "filter" // runs
	UserMaker  = "maker"  // makes topics
)

// RestrictedPassword is a user's on the listener RESTRICTED.
func RestrictedPassword(user string) string { return user + "-secret" }

// restrictedPort is the index of the listener RESTRICTED among a broker's ports.
const restrictedPort = 2

// RestrictedAddr is host:port of the listener RESTRICTED.
func (k *Kafka) RestrictedAddr() string { return address(k.ports[restrictedPort]) }

func restrictedProperties(ports []int, plain string) string {
	restricted := address(ports[restrictedPort])
	login := plainLogin([]KafkaUser{
		{Name: UserFilter, Password: RestrictedPassword(UserFilter), Mechanism: MechanismPlain},
		{Name: UserMaker, Password: RestrictedPassword(UserMaker), Mechanism: MechanismPlain},
	})
	return strings.Join([]string{
		"listeners=PLAINTEXT://" + address(ports[0]) + ",CONTROLLER://" + address(ports[1]) + ",RESTRICTED://" + restricted,
		"advertised.listeners=PLAINTEXT://" + plain + ",RESTRICTED://" + restricted,
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,RESTRICTED:SASL_PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"allow.everyone.if.no.acl.found=false",
		"super.users=" + superUsers(nil),
		"sasl.enabled.mechanisms=" + MechanismPlain,
		"listener.name.restricted.plain.sasl.jaas.config=" + login,
	}, "\n") + "\n"
}

// Grant gives rights to a user, Revoke takes them away. Brokers learn of it a
// moment later.
func Grant(ctx context.Context, adm *kadm.Client, user string, rights ...acl.Right) error {
	for _, r := range rights {
		made, err := adm.CreateACLs(ctx, rule(user, r))
		if err == nil {
			err = made[0].Err
		}
		if err != nil {
			return fmt.Errorf("granting %s to %s: %w", r, user, err)
		}
	}
	return nil
}

// Revoke fails where the right was not granted.
func Revoke(ctx context.Context, adm *kadm.Client, user string, rights ...acl.Right) error {
	for _, r := range rights {
		gone, err := adm.DeleteACLs(ctx, rule(user, r))
		if err == nil {
			err = gone[0].Err
		}
		if err == nil && len(gone[0].Deleted) != 1 {
			err = fmt.Errorf("%d rules are of it", len(gone[0].Deleted)) //nolint:err113 // for people
		}
		if err != nil {
			return fmt.Errorf("revoking %s from %s: %w", r, user, err)
		}
	}
	return nil
}

func rule(user string, r acl.Right) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:" + user).AllowHosts("*")
	switch r.Resource {
	case acl.Topic:
		b.Topics(r.Name.Text)
	case acl.Group:
		b.Groups(r.Name.Text)
	case acl.TransactionalID:
		b.TransactionalIDs(r.Name.Text)
	}
	pattern := kadm.ACLPatternLiteral
	if r.Name.Prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	return b.ResourcePatternType(pattern).Operations(map[acl.Operation]kmsg.ACLOperation{
		acl.Read: kmsg.ACLOperationRead, acl.Write: kmsg.ACLOperationWrite, acl.Create: kmsg.ACLOperationCreate,
		acl.Describe: kmsg.ACLOperationDescribe, acl.DescribeConfigs: kmsg.ACLOperationDescribeConfigs,
	}[r.Operation])
}
