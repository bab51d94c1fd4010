package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/internal/agentrun"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/files"
	"switchyard/internal/supervise"
)

// addressName is a file in the data directory with the address of the gateway that runs on it.
const addressName = "gateway.address"

// inUseError is returned for a data directory on which another gateway is running.
type inUseError struct{ dir string }

func (e inUseError) Error() string {
	return fmt.Sprintf("the data directory %s is in use by another running gateway", e.dir)
}

// besideFlags are the flags of up that apply to a gateway already running.
var besideFlags = []string{
	"config", "data", "name", "create", "no-worktrees", "commit-moves", "allow-merges", "merge-check",
}

// beside serves boards beside a gateway already running on the data directory.
type beside struct {
	gateway *agentrun.Client
	token   string // for its API
	server  domain.Secret
	git     config.Git
	log     *slog.Logger
}

// serveBeside serves boards and registers them with the gateway running on the data directory, until ctx ends.
func serveBeside(
	ctx context.Context, inUse inUseError, flags *pflag.FlagSet, boards []workBoard, u *up, log *slog.Logger,
	out io.Writer,
) error {
	var others []string
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(besideFlags, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	address, err := files.Read(filepath.Join(inUse.dir, addressName), 1<<10)
	switch {
	case len(others) > 0:
		return fmt.Errorf("%w: beside it, %s cannot be given", inUse, strings.Join(others, ", "))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return errors.Join(inUse, err)
	case err != nil:
		return fmt.Errorf("%w, and it does not say where", inUse)
	}
	gateway := strings.TrimSpace(string(address))
	b := beside{agentrun.NewClient(gateway), os.Getenv("SWITCHYARD_API_TOKEN"), u.token, u.git, log}
	var registry struct {
		Active   *string
		Projects []struct{ Name, URL string }
	}
	if err := b.call(ctx, http.MethodGet, "/api/gateway", nil, &registry); err != nil {
		return fmt.Errorf("%w: %w", inUse, err)
	}
	urls := map[string]string{}
	for _, p := range registry.Projects {
		urls[p.Name] = p.URL
	}
	ctx, cancel := context.WithCancel(ctx)
	loops := supervise.New(ctx, log)
	defer loops.Wait()
	defer cancel()
	for i := range boards {
		address, err := b.add(ctx, &boards[i], urls, loops)
		if err != nil {
			return fmt.Errorf("project %s: %w", boards[i].name, err)
		}
		if i == 0 {
			fmt.Fprintf(out, "A gateway runs on %s already, at %s: serving beside it\n", inUse.dir, gateway)
		}
		fmt.Fprintf(out, servedAt, boards[i].name, address, boards[i].Dir, boards[i].Layout)
	}
	if registry.Active == nil {
		err := b.call(ctx, http.MethodPost, "/api/gateway/switch", map[string]string{"project": boards[0].name}, nil)
		if err != nil {
			return err
		}
	}
	tellService(ready)
	<-ctx.Done()
	return nil
}

// add serves a board, at its project's former address if nothing else is there now, and registers it. A name whose
// server answers stands for another directory.
func (b *beside) add(
	ctx context.Context, board *workBoard, urls map[string]string, loops *supervise.Group,
) (address string, err error) {
	names := map[string]string{} // already taken, in the form that freeName takes
	var listeners []net.Listener
	for listeners == nil {
		name, err := freeName(board, names)
		if err != nil {
			return "", err
		}
		last, known := urls[name]
		if listeners = listenAt(b.log, last); known && listeners == nil {
			names["served at "+last] = name
			continue
		}
		if board.name = name; listeners == nil {
			if listeners, err = listen(b.log, loopback); err != nil {
				return "", err
			}
		}
	}
	server, err := openProject(&config.Project{
		Name: board.name, Work: board.Dir, Layout: board.Layout, Token: b.server, AllowWrites: true, Git: b.git,
	}, b.log)
	if err != nil {
		closeAll(listeners)
		return "", err
	}
	loops.Go("project server of "+board.name, func(ctx context.Context) error { return server.run(ctx, listeners) })
	address = baseURL(loopback, listeners)
	project := map[string]string{"url": address, "token": b.server.Reveal()}
	if _, known := urls[board.name]; known {
		err = b.call(ctx, http.MethodPut, "/api/gateway/projects/"+url.PathEscape(board.name), project, nil)
	} else {
		project["name"] = board.name
		err = b.call(ctx, http.MethodPost, "/api/gateway/projects", project, nil)
	}
	urls[board.name] = address
	return address, err
}

func (b *beside) call(ctx context.Context, method, path string, in, out any) error {
	err := b.gateway.Call(ctx, agentrun.CallLimit, method, path, b.token, in, out)
	refusal, refused := errors.AsType[*agentrun.Refusal](err)
	if refused && (refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden) {
		return fmt.Errorf("it wants an administrator's token in SWITCHYARD_API_TOKEN (%d)", refusal.Status)
	}
	return err
}
