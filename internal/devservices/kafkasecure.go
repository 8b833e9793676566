package devservices

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dedupledger/internal/devservices/pki"
)

// SASL mechanisms, as Kafka names them.
const (
	MechanismPlain       = "PLAIN"
	MechanismScramSHA256 = "SCRAM-SHA-256"
	MechanismScramSHA512 = "SCRAM-SHA-512"
)

// KafkaSecurity says how a secure broker is set up. Its listener SASL_SSL is
// for users; on its listener PLAINTEXT everybody is the super user ANONYMOUS,
// for what an administrator does.
type KafkaSecurity struct {
	Certificate pki.Pair // of the listener SASL_SSL
	// ClientCA (PEM) signs client certificates; nil: none is asked for.
	ClientCA []byte
	// RequireClientCertificate refuses who has none.
	RequireClientCertificate bool

	Users      []KafkaUser
	SuperUsers []string // users who need no ACL
	// Reauthenticate bounds how long a connection may go on without
	// authenticating again (connections.max.reauth.ms, KIP-368); 0: for ever.
	Reauthenticate time.Duration

	// Advertised and AdvertisedPlain are the addresses told to clients of either
	// listener, for a proxy; "" is the listener's own.
	Advertised, AdvertisedPlain string
	Settings                    []string // further properties, "name=value"
}

// KafkaUser is a user of the listener SASL_SSL. A user of PLAIN is set when the
// broker starts and never changes.
type KafkaUser struct{ Name, Password, Mechanism string }

// SecureKafka is a broker with a KafkaSecurity. Addr is the listener PLAINTEXT.
type SecureKafka struct {
	*Kafka
	issued atomic.Int32
}

// SecureAddr is host:port of the listener SASL_SSL.
func (k *SecureKafka) SecureAddr() string { return address(k.ports[securePort]) }

// securePort is the index of the listener SASL_SSL among a broker's ports.
const securePort = 2

// properties go behind the usual ones and win over them.
func (o *KafkaSecurity) properties(folder string, ports []int, plain string) (string, error) {
	store, err := writeKeystore(folder, "server", o.Certificate)
	if err != nil {
		return "", err
	}
	advertised := o.Advertised
	if advertised == "" {
		advertised = address(ports[securePort])
	}
	const listener = "listener.name.sasl_ssl."
	lines := []string{
		"listeners=PLAINTEXT://" + address(ports[0]) + ",CONTROLLER://" + address(ports[1]) + ",SASL_SSL://" + address(ports[securePort]),
		"advertised.listeners=PLAINTEXT://" + plain + ",SASL_SSL://" + advertised,
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
		"inter.broker.listener.name=PLAINTEXT",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"allow.everyone.if.no.acl.found=false",
		"super.users=" + superUsers(o.SuperUsers),
		"sasl.enabled.mechanisms=" + strings.Join([]string{MechanismPlain, MechanismScramSHA256, MechanismScramSHA512}, ","),
		listener + "plain.sasl.jaas.config=" + plainLogin(o.Users),
		listener + "scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		listener + "scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		listener + "ssl.keystore.type=PEM",
		listener + "ssl.keystore.location=" + store,
	}
	if o.ClientCA != nil {
		trusted := filepath.Join(folder, "clients.pem")
		if err := pki.WriteFile(trusted, o.ClientCA); err != nil {
			return "", fmt.Errorf("for Kafka: %w", err)
		}
		auth := "requested"
		if o.RequireClientCertificate {
			auth = "required"
		}
		lines = append(lines, listener+"ssl.truststore.type=PEM", listener+"ssl.truststore.location="+trusted, listener+"ssl.client.auth="+auth)
	}
	if o.Reauthenticate > 0 {
		lines = append(lines, listener+"connections.max.reauth.ms="+strconv.FormatInt(o.Reauthenticate.Milliseconds(), 10))
	}
	return strings.Join(append(lines, o.Settings...), "\n") + "\n", nil
}

// writeKeystore writes a store of type PEM (KIP-651): key and chain in one file.
func writeKeystore(folder, name string, pair pki.Pair) (string, error) {
	store := filepath.Join(folder, name+".pem")
	if err := pki.WriteFile(store, bytes.Join([][]byte{pair.Key, pair.Certificate}, nil)); err != nil {
		return "", fmt.Errorf("for Kafka: %w", err)
	}
	return store, nil
}

func superUsers(names []string) string {
	all := []string{"User:ANONYMOUS"}
	for _, n := range names {
		all = append(all, "User:"+n)
	}
	return strings.Join(all, ";")
}

func plainLogin(users []KafkaUser) string {
	login := []string{"org.apache.kafka.common.security.plain.PlainLoginModule required"}
	for _, u := range users {
		if u.Mechanism == MechanismPlain {
			login = append(login, fmt.Sprintf(`user_%s="%s"`, u.Name, u.Password))
		}
	}
	return strings.Join(login, " ") + ";"
}

// Admin is a client on the listener PLAINTEXT; close its client.
func (k *SecureKafka) Admin() (*kadm.Client, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(k.Addr()))
	if err != nil {
		return nil, fmt.Errorf("preparing Kafka's administrator: %w", err)
	}
	return kadm.NewClient(c), nil
}

// formatting makes users of SCRAM with the log folder: made later, a user is
// known some moments after the broker has said so.
func (o *KafkaSecurity) formatting() []string {
	if o == nil {
		return nil
	}
	var args []string
	for _, u := range o.Users {
		if u.Mechanism != MechanismPlain {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s,iterations=%d]", u.Mechanism, u.Name, u.Password, scramIterations))
		}
	}
	return args
}

// scramIterations is the least that Kafka takes.
const scramIterations = 4096

// SetUser makes a user of a SCRAM mechanism, or changes its password.
// It is in force some moments later. Connections that are open stay so until
// they authenticate again.
func (k *SecureKafka) SetUser(ctx context.Context, u KafkaUser) error {
	mechanism := kadm.ScramSha256
	if u.Mechanism == MechanismScramSHA512 {
		mechanism = kadm.ScramSha512
	}
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	answers, err := adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{
		User: u.Name, Mechanism: mechanism, Iterations: scramIterations, Password: u.Password,
	}})
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("setting the %s password of Kafka user %s: %w", u.Mechanism, u.Name, err)
	}
	return nil
}

// SetCertificate gives the listener SASL_SSL another certificate (KIP-226), in
// force some moments later; connections that are open keep the old one. The broker refuses a certificate
// for other hosts than before.
func (k *SecureKafka) SetCertificate(ctx context.Context, pair pki.Pair) error {
	store, err := writeKeystore(k.folder, fmt.Sprintf("server-%d", k.issued.Add(1)), pair)
	if err != nil {
		return err
	}
	adm, err := k.Admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	answers, err := adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{
		Op: kadm.SetConfig, Name: "listener.name.sasl_ssl.ssl.keystore.location", Value: &store,
	}}, 1)
	if err != nil {
		return fmt.Errorf("giving Kafka another certificate: %w", err)
	}
	for _, a := range answers {
		if a.Err != nil {
			return fmt.Errorf("giving Kafka another certificate: %w: %s", a.Err, a.ErrMessage)
		}
	}
	return nil
}
