package gatewaytest

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/handlers"
	"switchyard/internal/botfile"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/signin"
	"switchyard/internal/signintest"
)

// NewWholeSite returns a site with every part: project servers over HTTP unless o has others, a bot, a sign-in, and
// chat webhooks that refuse everybody.
func NewWholeSite(t testing.TB, o service.Options, adminToken domain.Secret) *Site {
	t.Helper()
	dir := t.TempDir()
	if o.Projects == nil {
		client := NewProjectClient(t)
		o.Projects, o.Stories = client, client
	}
	if o.Provider == nil {
		o.Provider = SignIn(signintest.New(t), slog.New(slog.DiscardHandler))
	}
	o.AgentTimeout = time.Minute
	o.BotFile = botfile.File{Path: filepath.Join(dir, "bot.toml")}
	o.Credentials = signin.NewFile(filepath.Join(dir, "credentials.json"))
	return NewSite(t, o, handlers.Gateway{
		AdminToken: adminToken, SessionKey: []byte(strings.Repeat("k", 64)),
		Chat: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }),
	})
}

// NewWithBot returns the handler of a gateway with this bot, and the path of the bot's file.
func NewWithBot(t testing.TB, bot *Bot) (http.Handler, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.toml")
	o := service.Options{BotFile: botfile.File{Path: path}, Bot: bot}
	return New(t, o, handlers.Gateway{}).HTTP.Handler(), path
}

// SignIn returns the client of an identity provider.
func SignIn(p *signintest.Provider, log *slog.Logger) *signin.Client {
	return signin.New(config.SignIn{
		AuthorizeURL: p.AuthorizeURL, TokenURL: p.TokenURL, ClientID: signintest.ClientID, Product: signintest.Product,
	}, nil, log)
}

// NamedToken makes a token.
func NamedToken(t testing.TB, s *service.Service, name string, role domain.Role) (id, token string) {
	t.Helper()
	made, secret, err := s.Access.CreateToken(t.Context(), domain.NamedToken{Name: name, Role: role}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID, secret.Reveal()
}

// Bot is a bot that has not been set up. The zero value restarts and sends without an error.
type Bot struct {
	OnRestart func(context.Context) error
	TestError error    // of SendTest and Tell
	Rooms     []string // of a bot that is connected; nil for one that has not been set up

	mu       sync.Mutex
	told     []domain.Announcement
	Restarts atomic.Int32
}

func (b *Bot) Restart(ctx context.Context) error {
	b.Restarts.Add(1)
	if b.OnRestart != nil {
		return b.OnRestart(ctx)
	}
	return nil
}

func (b *Bot) SendTest(context.Context) error { return b.TestError }

func (b *Bot) Tell(_ context.Context, t domain.Announcement) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.TestError == nil {
		b.told = append(b.told, t)
	}
	return b.TestError
}

// AllTold returns what the team was told.
func (b *Bot) AllTold() []domain.Announcement {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.told)
}

func (b *Bot) Posted(context.Context) (int64, error) { return math.MaxInt64, nil }

func (b *Bot) Status() domain.BotStatus {
	if b.Rooms != nil {
		return domain.BotStatus{
			Transport: domain.BotMatrix, State: domain.BotConnected, Since: time.UnixMilli(1), Rooms: b.Rooms,
		}
	}
	return domain.BotStatus{
		Transport: domain.BotMatrix, State: domain.BotOff, Detail: "Not set up",
		Since: time.UnixMilli(1), Rooms: []string{},
	}
}
