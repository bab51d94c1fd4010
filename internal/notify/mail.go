package notify

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/wneessen/go-mail"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

// Mail is the server that sends mail.
type Mail config.Notifications

func mailbox(u *url.URL) *receiver {
	text, err := url.PathUnescape(u.Opaque)
	if err != nil || u.RawQuery != "" || strings.ContainsAny(text, "\r\n<>") {
		return nil
	}
	list, err := netmail.ParseAddressList(text)
	if err != nil || len(list) > 20 {
		return nil
	}
	return &receiver{limit: 20_000, mail: domain.Map(list, func(a *netmail.Address) string { return a.Address })}
}

func (s Mail) send(ctx context.Context, to []string, m domain.Message) domain.SendResult {
	if s.SMTPHost == "" || s.SMTPFrom == "" {
		return domain.SendResult{Err: domain.Errorf(domain.BadGateway,
			"mail is not set up: it needs notifications.smtp_host and notifications.smtp_from")}
	}
	message := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(message.From(s.SMTPFrom), message.To(to...)); err != nil {
		return domain.SendResult{
			Err: domain.Errorf(domain.BadGateway, "the address of the sender or a recipient is malformed"),
		}
	}
	message.Subject(m.Title)
	message.SetMessageIDWithValue(m.ID + "@switchyard")
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetDateWithValue(m.At)
	message.SetBodyString(mail.TypeTextPlain, withLink(m.Text, m.Link)+"\n")
	options := []mail.Option{mail.WithPort(s.SMTPPort), mail.WithTimeout(attemptLimit), mail.WithoutNoop()}
	// Left to itself, the library would take a connection that we have made for one that anybody can read.
	auth := mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthPlain,
		mail.SMTPAuthLogin, mail.SMTPAuthCramMD5)
	switch s.SMTPTLS {
	case "implicit":
		options = append(options, mail.WithSSL())
	case "none":
		options, auth = append(options, mail.WithTLSPolicy(mail.NoTLS)), mail.WithSMTPAuth(mail.SMTPAuthPlainNoEnc)
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.SMTPUsername != "" {
		options = append(options, auth, mail.WithUsername(s.SMTPUsername), mail.WithPassword(s.SMTPPassword.Reveal()))
	}
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		return s.dial(ctx, network, address)
	}
	options = append(options, mail.WithDialContextFunc(dial))
	client, err := mail.NewClient(s.SMTPHost, options...)
	if err == nil {
		err = client.DialAndSendWithContext(ctx, message)
	}
	if message.IsDelivered() {
		err = nil // even if the goodbye failed: a retry would send it twice
	}
	return domain.SendResult{Parts: 1, Status: mailStatus(err), Err: s.failure(err)}
}

// dial connects until ctx ends. The library leaves the connection open after some failures, times each step separately,
// and keeps an answer of any length.
func (s Mail) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { c.Close() })
	c = limitedConn{c, &io.LimitedReader{R: c, N: maxAnswer}}
	if s.SMTPTLS == "implicit" {
		c = tls.Client(c, &tls.Config{ServerName: s.SMTPHost, MinVersion: tls.VersionTLS12})
	}
	return c, nil
}

// limitedConn ends once a given amount has been read.
type limitedConn struct {
	net.Conn
	answers io.Reader
}

func (c limitedConn) Read(p []byte) (int, error) { return c.answers.Read(p) }

func mailStatus(err error) int {
	reply, _ := errors.AsType[*textproto.Error](err)
	failed, _ := errors.AsType[*mail.SendError](err)
	switch {
	case err == nil:
		return 250
	case reply != nil:
		return reply.Code
	case failed != nil:
		return failed.ErrorCode()
	}
	return 0
}

func (s Mail) failure(err error) error {
	var network net.Error
	if err != nil && s.repeatsPassword(err.Error()) {
		err = &textproto.Error{Code: mailStatus(err), Msg: "its answer repeats the password"}
	}
	switch status := mailStatus(err); {
	case err == nil:
		return nil
	case status > 0:
		return domain.WrapError(domain.BadGateway, err, "the mail server refused the message: "+
			domain.Cut(err.Error(), maxExcerpt))
	case errors.Is(err, net.ErrClosed): // when the time was up
		return domain.WrapError(domain.BadGateway, err, "mail server: "+
			neterr.Describe(context.DeadlineExceeded, attemptLimit))
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return domain.WrapError(domain.BadGateway, err, "mail server: "+neterr.Describe(err, attemptLimit))
	}
	return domain.WrapError(domain.BadGateway, err, "mail server: "+domain.Cut(err.Error(), maxExcerpt))
}

// repeatsPassword reports whether a text has the password, as it is or as a login sends it.
func (s Mail) repeatsPassword(text string) bool {
	password, encode := s.SMTPPassword.Reveal(), base64.StdEncoding.EncodeToString
	return password != "" && slices.ContainsFunc([]string{
		password, encode([]byte(password)), encode([]byte("\x00" + s.SMTPUsername + "\x00" + password)),
	}, func(secret string) bool { return strings.Contains(text, secret) })
}
