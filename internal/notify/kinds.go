// Package notify sends messages to targets. Each kind is a row of a table that makes HTTP requests of a message; all of
// them go through one client, which connects to allowed addresses only, follows no redirects and reads little. It must
// know neither rules nor the store.
package notify

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack/slackutilsx"

	"switchyard/internal/domain"
)

// receiver is what an address of a target means.
type receiver struct {
	requests func(t *domain.Target, m domain.Message, now time.Time) []request
	endpoint *url.URL // of HTTP
	mail     []string // recipients, instead of requests
	signs    bool     // it is a webhook, which has a secret
	limit    int      // of the text, in characters
}

// request is a POST; several make up a message to several rooms.
type request struct {
	url    string
	header http.Header
	body   []byte
}

// kinds are the schemes of addresses, each with its form and what reads it.
var kinds = []struct {
	scheme, form string
	parse        func(u *url.URL) *receiver // nil for another form
}{
	{"https", "https://host/path (Standard Webhooks)", webhook},
	{"http", "http://host/path in this network", webhook},
	{"mailto", "mailto:address", mailbox},
	{"ntfy", "ntfy://[user:password@]host/topic", ntfy},
	{"gotify", "gotify://host[/path]/token", gotify},
	{"discord", "discord://token@id", discord},
	{"slack", "slack://hook:A-B-C@webhook", slack},
	{"mattermost", "mattermost://host/token", mattermost},
	{"telegram", "telegram://token@telegram?chats=id,@channel", telegram},
	{"pushover", "pushover://shoutrrr:token@user/", pushover},
}

// parse reads the address of a target. It returns Invalid with the forms that are known.
func parse(text string) (*receiver, *url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > domain.MaxTargetURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
		return nil, nil, domain.Errorf(domain.Invalid, "url: must be an address without spaces, of at most %d bytes",
			domain.MaxTargetURL)
	}
	var forms []string
	for _, k := range kinds {
		forms = append(forms, k.form)
		if k.scheme != u.Scheme {
			continue
		}
		if r := k.parse(u); r != nil && (r.mail != nil || r.endpoint.Hostname() != "") && u.Fragment == "" {
			return r, u, nil
		}
		return nil, nil, domain.Errorf(domain.Invalid, "url: must have the form %s", k.form)
	}
	return nil, nil, domain.Errorf(domain.Invalid, "url: must be one of %s", strings.Join(forms, "; "))
}

// Check returns whether an address is a webhook's. It returns Invalid for one that is not a target's or that the guard
// rejects.
func (s *Sender) Check(ctx context.Context, address domain.Secret) (signs bool, err error) {
	if device, ok := domain.ParsePushAddress(address); ok {
		return false, s.checkPush(ctx, device)
	}
	r, u, err := parse(address.Reveal())
	if err != nil || r.mail != nil {
		return false, err
	}
	query := u.Query()
	if u.Scheme == "ntfy" && !slices.Contains([]string{"", "http", "https"}, query.Get("scheme")) {
		return false, domain.Errorf(domain.Invalid, "url: scheme must be http or https")
	}
	if _, known := answers[query.Get("disabletls")]; !known && (u.Scheme == "gotify" || u.Scheme == "mattermost") {
		return false, domain.Errorf(domain.Invalid, "url: disabletls must be yes or no")
	}
	return r.signs, s.guard.checkURL(ctx, r.endpoint)
}

// Shown returns an address without its secrets: scheme, host and port, and the rest as an ellipsis.
func (s *Sender) Shown(address domain.Secret) string {
	if device, ok := domain.ParsePushAddress(address); ok {
		host := "…"
		if u, err := url.Parse(device.Endpoint); err == nil {
			host = u.Host
		}
		return "webpush://" + host + "/…"
	}
	r, u, err := parse(address.Reveal())
	switch {
	case err != nil:
		return "…"
	case r.mail != nil:
		return address.Reveal()
	case r.endpoint.Host != u.Host: // it is the service's, and the address has secrets in its place
		return u.Scheme + "://…"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// answers are shoutrrr's values for parameters such as disabletls.
var answers = map[string]bool{
	"yes": true, "y": true, "true": true, "1": true, "no": false, "n": false, "false": false, "0": false, "": false,
}

// server returns the address of path on the host of u, over http if a parameter of u says so.
func server(u *url.URL, path string) *url.URL {
	query := u.Query()
	scheme := "https"
	if query.Get("scheme") == "http" || answers[query.Get("disabletls")] {
		scheme = "http"
	}
	return &url.URL{Scheme: scheme, Host: u.Host, Path: path}
}

func ntfy(u *url.URL) *receiver {
	topic := strings.Trim(u.Path, "/")
	if topic == "" {
		return nil
	}
	to := server(u, "/"+topic)
	to.User = u.User
	return &receiver{endpoint: to, limit: 1200, requests: func(_ *domain.Target, m domain.Message, _ time.Time) []request {
		header := http.Header{"Title": {mime.QEncoding.Encode("utf-8", m.Title)}, "Priority": {priorities[m.Signal].ntfy}}
		if m.Link != "" {
			header.Set("Click", m.Link)
		}
		return []request{{to.String(), header, []byte(domain.CutBytes(m.Text, ntfyBytes))}}
	}}
}

// The longest texts with their links, in UTF-16 units, and ntfy's in bytes: it turns a longer one into a file.
const (
	discordText, telegramText, mattermostText = 2000, 4096, 4000
	ntfyBytes                                 = 4000
)

// priorities are those of the services, by what a message asks for.
var priorities = map[domain.Signal]struct {
	ntfy             string
	gotify, pushover int
}{
	domain.SignalStop: {"high", 8, 1}, domain.SignalCaution: {"default", 5, 0},
	domain.SignalNone: {"low", 2, -1}, domain.SignalClear: {"low", 2, -1}, "": {"default", 5, 0},
}

func gotify(u *url.URL) *receiver {
	at := strings.LastIndexByte(strings.TrimRight(u.Path, "/"), '/')
	if at < 0 || u.User != nil {
		return nil
	}
	token, to := strings.Trim(u.Path[at:], "/"), server(u, u.Path[:at]+"/message")
	if token == "" {
		return nil
	}
	return posts(to, 4000, func(m domain.Message) map[string]any {
		body := map[string]any{"title": m.Title, "message": m.Text, "priority": priorities[m.Signal].gotify}
		if m.Link != "" {
			click := map[string]any{"click": map[string]string{"url": m.Link}}
			body["extras"] = map[string]any{"client::notification": click}
		}
		return body
	}, "X-Gotify-Key", token)
}

func discord(u *url.URL) *receiver {
	token, id := u.User.Username(), u.Host
	if token == "" || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(id, ":.") {
		return nil
	}
	to := (&url.URL{Scheme: "https", Host: "discord.com"}).JoinPath("api", "webhooks", id, token)
	return posts(to, 900, func(m domain.Message) map[string]any {
		return map[string]any{
			"content": fit(m, discordText, markdown), "flags": 1 << 2, // without link previews
			"allowed_mentions": map[string]any{"parse": []string{}},
		}
	})
}

func slack(u *url.URL) *receiver {
	key, _ := u.User.Password()
	parts := strings.Split(key, "-")
	if u.User.Username() != "hook" || u.Host != "webhook" || len(parts) != 3 || strings.ContainsAny(key, "/.") {
		return nil
	}
	to := (&url.URL{Scheme: "https", Host: "hooks.slack.com"}).JoinPath("services", parts[0], parts[1], parts[2])
	return posts(to, 3000, func(m domain.Message) map[string]any {
		text := slackutilsx.EscapeMessage(m.Text)
		if m.Link != "" {
			text += "\n<" + slackutilsx.EscapeMessage(m.Link) + ">"
		}
		return map[string]any{
			"text": text, "mrkdwn": false, "parse": "none", "link_names": false, "unfurl_links": false, "unfurl_media": false,
		}
	})
}

func mattermost(u *url.URL) *receiver {
	token, channel, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if token == "" {
		return nil
	}
	to := server(u, "/hooks/"+token)
	return posts(to, 3000, func(m domain.Message) map[string]any {
		body := map[string]any{"text": fit(m, mattermostText, markdown)}
		if channel != "" {
			body["channel"] = channel
		}
		if name := u.User.Username(); name != "" {
			body["username"] = name
		}
		return body
	})
}

func telegram(u *url.URL) *receiver {
	token := u.User.String() // it has a colon
	chats := strings.FieldsFunc(u.Query().Get("chats"), func(r rune) bool { return r == ',' })
	if token == "" || u.Host != "telegram" || len(chats) == 0 || len(chats) > 20 {
		return nil
	}
	to := (&url.URL{Scheme: "https", Host: "api.telegram.org"}).JoinPath("bot"+token, "sendMessage")
	return &receiver{
		endpoint: to, limit: 2000,
		requests: func(_ *domain.Target, m domain.Message, _ time.Time) (all []request) {
			for _, chat := range chats {
				all = append(all, jsonTo(to, map[string]any{
					"chat_id": chat, "text": fit(m, telegramText, inert),
					"link_preview_options": map[string]bool{"is_disabled": true},
				}))
			}
			return all
		},
	}
}

func pushover(u *url.URL) *receiver {
	token, _ := u.User.Password()
	if token == "" || strings.Contains(u.Host, ":") {
		return nil
	}
	to := &url.URL{Scheme: "https", Host: "api.pushover.net", Path: "/1/messages.json"}
	return posts(to, 900, func(m domain.Message) map[string]any {
		body := map[string]any{
			"token": token, "user": u.Host, "title": m.Title, "message": m.Text, "priority": priorities[m.Signal].pushover,
		}
		if m.Link != "" {
			body["url"] = m.Link
		}
		if devices := u.Query().Get("devices"); devices != "" {
			body["device"] = devices
		}
		return body
	})
}

// posts returns a receiver to which the JSON object that body returns is sent, with pairs of header names and values.
func posts(to *url.URL, limit int, body func(domain.Message) map[string]any, header ...string) *receiver {
	requests := func(_ *domain.Target, m domain.Message, _ time.Time) []request {
		return []request{jsonTo(to, body(m), header...)}
	}
	return &receiver{endpoint: to, limit: limit, requests: requests}
}

// jsonTo returns a request with a JSON body and pairs of header names and values.
func jsonTo(to *url.URL, body map[string]any, header ...string) request {
	text, _ := json.Marshal(body) // strings and numbers always encode
	r := request{to.String(), http.Header{"Content-Type": {"application/json"}}, text}
	for i := 0; i < len(header); i += 2 {
		r.header.Set(header[i], header[i+1])
	}
	return r
}
