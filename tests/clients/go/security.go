package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	segmentsasl "github.com/segmentio/kafka-go/sasl"
	segmentplain "github.com/segmentio/kafka-go/sasl/plain"
	segmentscram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	franzsasl "github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdgscram "github.com/xdg-go/scram"
)

// security is what the file that SECURITY names says of protocol, login and certificates.
type security struct {
	Protocol          string `json:"protocol"`
	Mechanism         string `json:"mechanism"`
	Username          string `json:"username"`
	Password          string `json:"password"`
	Token             string `json:"token"`
	ByDelegationToken bool   `json:"by_delegation_token"`
	Authority         string `json:"authority"`
	Certificate       string `json:"certificate"`
	Key               string `json:"key"`
}

var secured = securityWanted()

func securityWanted() *security {
	path := os.Getenv("SECURITY")
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	must(err)
	wanted := &security{}
	must(json.Unmarshal(data, wanted))
	return wanted
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// tls is nil where connections are in plain text.
func (s *security) tls() *tls.Config {
	if s.Protocol != "SSL" && s.Protocol != "SASL_SSL" {
		return nil
	}
	trusted, err := os.ReadFile(s.Authority)
	must(err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(trusted) {
		panic("no certificate in " + s.Authority)
	}
	if s.Certificate != "" {
		own, err := tls.LoadX509KeyPair(s.Certificate, s.Key)
		must(err)
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// -- franz-go ---------------------------------------------------------------------------------------

func franzSecurity() []kgo.Opt {
	var options []kgo.Opt
	if secured == nil {
		return options
	}
	if config := secured.tls(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	if secured.Mechanism != "" {
		options = append(options, kgo.SASL(secured.franzMechanism()))
	}
	return options
}

func (s *security) franzMechanism() franzsasl.Mechanism {
	login := scram.Auth{User: s.Username, Pass: s.Password, IsToken: s.ByDelegationToken}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: s.Token}.AsMechanism()
	}
	panic("unknown mechanism " + s.Mechanism)
}

// -- sarama -----------------------------------------------------------------------------------------

func secureSarama(config *sarama.Config) {
	if secured == nil {
		return
	}
	if found := secured.tls(); found != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, found
	}
	if secured.Mechanism == "" {
		return
	}
	login := &config.Net.SASL
	login.Enable, login.User, login.Password = true, secured.Username, secured.Password
	login.Mechanism = sarama.SASLMechanism(secured.Mechanism)
	login.TokenProvider = tokenOf(secured.Token)
	hash := xdgscram.SHA256
	if secured.Mechanism == "SCRAM-SHA-512" {
		hash = xdgscram.SHA512
	}
	login.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{hash: hash} }
}

type tokenOf string

func (t tokenOf) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

// saramaScram is what sarama's users write themselves.
type saramaScram struct {
	hash xdgscram.HashGeneratorFcn
	*xdgscram.ClientConversation
}

func (s *saramaScram) Begin(user, password, authorization string) error {
	client, err := s.hash.NewClient(user, password, authorization)
	if err == nil {
		s.ClientConversation = client.NewConversation()
	}
	return err
}

// -- kafka-go ---------------------------------------------------------------------------------------

func segmentMechanism() segmentsasl.Mechanism {
	if secured == nil || secured.Mechanism == "" {
		return nil
	}
	algorithm := segmentscram.SHA256
	switch secured.Mechanism {
	case "PLAIN":
		return segmentplain.Mechanism{Username: secured.Username, Password: secured.Password}
	case "SCRAM-SHA-512":
		algorithm = segmentscram.SHA512
	case "OAUTHBEARER":
		panic(errors.New("kafka-go has no OAUTHBEARER"))
	}
	made, err := segmentscram.Mechanism(algorithm, secured.Username, secured.Password)
	must(err)
	return made
}

// segmentTransport is what producers and admins of kafka-go connect by.
func segmentTransport() kafka.RoundTripper {
	if secured == nil {
		return nil
	}
	return &kafka.Transport{TLS: secured.tls(), SASL: segmentMechanism()}
}

// segmentDialer is what readers of kafka-go connect by.
func segmentDialer() *kafka.Dialer {
	dialer := &kafka.Dialer{Timeout: 10 * time.Second, DualStack: true}
	if secured != nil {
		dialer.TLS, dialer.SASLMechanism = secured.tls(), segmentMechanism()
	}
	return dialer
}
