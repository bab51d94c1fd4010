package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/login"
	"switchyard/internal/neterr"
	"switchyard/internal/store/sqlite"
)

const checkLimit = 10 * time.Second

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a gateway needs: addresses, clock, disk, permissions, database, login, bot, targets",
		Long: "Check what a gateway with this configuration needs, before it is started or while it runs. Each check is a\n" +
			"line on standard output; what is not set up is good. The exit status is 1 if anything is bad. Nothing is\n" +
			"changed, and no secret is shown. For root the settings of the installed service stand where there are no others.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			environment, err := doctorEnvironment(cmd.Flags(), os.Getenv, "/", os.Geteuid())
			if err != nil {
				return err
			}
			return checkUp(cmd.Context(), cmd.Flags(), environment, cmd.OutOrStdout())
		},
	}
	config.AddFlags(cmd.Flags())
	return cmd
}

type doctor struct{ *config.Config }

// checks are what the doctor checks, each with the settings that it needs.
var checks = []struct {
	word     string
	run      func(*doctor, context.Context) (string, error)
	settings []string
}{
	{"addresses", (*doctor).addresses, []string{"gateway.listen", "gateway.public_url", "gateway.data"}},
	{"clock", (*doctor).clock, []string{"gateway.data", "gateway.database"}},
	{"disk", (*doctor).disk, []string{"gateway.data"}},
	{"permissions", (*doctor).permissions, []string{"gateway.data", "gateway.bot_config", "sign_in.credentials"}},
	{"database", (*doctor).database, []string{"gateway.data", "gateway.database"}},
	{"login", (*doctor).login, []string{"gateway.admin_token_file", "login."}},
	{"bot", (*doctor).bot, []string{"gateway.data", "gateway.database", "gateway.bot_config", "bot."}},
	{"targets", (*doctor).targets, []string{"gateway.data", "gateway.database", "notifications."}},
}

// checkUp prints a line for each check, and returns an error if any found a problem. If the gateway would not start
// with its configuration, the line of its addresses says so; the other checks need only what they look at.
func checkUp(ctx context.Context, flags *pflag.FlagSet, getenv func(string) string, out io.Writer) error {
	whole, mistake := config.Load(flags, getenv)
	bad := 0
	for _, check := range checks {
		c, err, says := whole, error(nil), ""
		if mistake != nil {
			c, err = config.LoadSome(flags, getenv, check.settings...)
		}
		if mistake != nil && check.word == "addresses" {
			err = fmt.Errorf("the gateway does not start: %w", mistake)
		}
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, checkLimit)
			says, err = check.run(&doctor{c}, limited)
			cancel()
		}
		state := "ok "
		if err != nil {
			bad++
			state, says = "bad", domain.MessageOf(err)
			if domain.CodeOf(err) == domain.Internal {
				says = err.Error()
			}
		}
		line := strings.Join(strings.Fields(says), " ")
		if _, err := fmt.Fprintf(out, "%-11s  %s  %s\n", check.word, state, line); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("checks that found something bad: %d", bad)
	}
	return nil
}

// isRunning reports whether a gateway holds the lock of the data directory. It creates no file.
func (d *doctor) isRunning() bool {
	path := filepath.Join(d.Data, lockName)
	if _, err := os.Stat(path + ".lock"); err != nil {
		return false
	}
	unlock, err := files.TryLock(path)
	if err == nil {
		unlock()
	}
	return errors.Is(err, files.ErrLocked)
}

// addresses checks that the address to listen on is free, or used by the gateway of this data directory, and that the
// public address leads to a gateway.
func (d *doctor) addresses(ctx context.Context) (string, error) {
	says, running := d.Listen+" is free", d.isRunning()
	listeners, err := listen(newLogger(io.Discard, "text", "error"), d.Listen)
	closeAll(listeners)
	switch {
	case err == nil && running:
		says = d.Listen + " is free; the gateway of this data directory listens elsewhere"
	case errors.Is(err, syscall.EADDRINUSE) && !running:
		return "", fmt.Errorf("%s: address already in use, and not by the gateway of this data directory", d.Listen)
	case err != nil && !running:
		return "", fmt.Errorf("%s: %w", d.Listen, err)
	case err != nil:
		if err := askGateway(ctx, localURL(d.Listen)); err != nil {
			return "", err
		}
		says = d.Listen + " has this gateway"
	}
	if d.PublicURL == "" {
		return says, nil
	}
	err = askGateway(ctx, strings.TrimSuffix(d.PublicURL, "/"))
	if err != nil && !running {
		return says + "; " + d.PublicURL + " is not checked while the gateway is not running", nil
	}
	return says + "; " + d.PublicURL + " leads to a gateway", err
}

func askGateway(ctx context.Context, address string) error {
	response, err := get(ctx, address+"/healthz")
	if err != nil {
		return fmt.Errorf("%s: %s", address, neterr.Describe(err, checkLimit))
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("%s: what answers there is no gateway", address)
	}
	return nil
}

func get(ctx context.Context, address string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}).RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	return response, err
}

// causeOf returns the system's words, without addresses and names of calls.
func causeOf(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}

// lowSpace is the free space below which a database may soon be in trouble.
const lowSpace = 256 << 20

func (d *doctor) disk(context.Context) (string, error) {
	free, err := freeSpace(existing(d.Data))
	if err != nil {
		return "", err
	}
	says := fmt.Sprintf("%d MiB are free for %s", free>>20, d.Data)
	if free < lowSpace {
		return "", errors.New("only " + says)
	}
	return says, nil
}

// existing returns dir, or its nearest parent that exists.
func existing(dir string) string {
	for {
		_, err := os.Stat(dir)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// permissions checks that the data directory can be written to, and that nobody else can read what is private.
func (d *doctor) permissions(context.Context) (string, error) {
	for _, dir := range []string{d.Data, filepath.Dir(d.BotConfig), filepath.Dir(d.Credentials)} {
		if err := writable(existing(dir)); err != nil {
			return "", fmt.Errorf("%s cannot be written to: %s", dir, causeOf(err))
		}
	}
	private := []string{d.BotConfig, d.Credentials}
	for _, name := range []string{sqlite.FileName, sessionKeyName} {
		private = append(private, filepath.Join(d.Data, name))
	}
	for _, path := range private {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && files.OthersMay(info, 0o7) {
			err = fmt.Errorf("%s can be read by others (mode %o)", path, info.Mode().Perm())
		}
		if err == nil {
			err = accessible(path)
		}
		if err != nil {
			return "", err
		}
	}
	if len(d.Warnings) > 0 {
		return "", errors.New(strings.Join(d.Warnings, "; "))
	}
	return d.Data + " is writable, and what is private is readable by its owner only", nil
}

func accessible(path string) error {
	mode := os.O_RDONLY
	if filepath.Base(path) == sqlite.FileName {
		mode = os.O_RDWR
	}
	file, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

func (d *doctor) login(ctx context.Context) (string, error) {
	var ways []string
	if d.AdminToken != "" {
		ways = append(ways, "an admin token")
	}
	if d.Login.HasProxyLogin() {
		ways = append(ways, "a trusted proxy")
	}
	if d.Login.Issuer != "" {
		provider := login.New(d.Login, nil)
		if _, _, err := provider.Begin(ctx, "http://localhost/login/callback"); err != nil {
			return "", err
		}
		ways = append(ways, provider.Host())
	}
	if len(ways) == 0 {
		return "not set up", nil
	}
	return strings.Join(ways, ", "), nil
}
