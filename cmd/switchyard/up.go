package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"switchyard/internal/agentrun"
	"switchyard/internal/config"
	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// up is a gateway together with the project servers of this machine.
type up struct {
	*gateway
	create, sample bool
	git            config.Git // of the project servers, like token
	token          domain.Secret
	first          string                          // the first project
	registered     func(ctx context.Context) error // called when the boards have been registered
}

func upCommand() *cobra.Command {
	var agent, name string
	u := &up{registered: func(context.Context) error { return nil }}
	cmd := &cobra.Command{
		ValidArgsFunction: completeDirs,

		Use: "up [--name N] [--create] [--sample] [--no-worktrees] [--commit-moves] [--allow-merges] " +
			"[--merge-check CMD] [DIR…] [--agent LABEL [-- CMD ARG…]]",
		Short: "Run everything on this machine: a gateway, and a project server for each work directory",
		Long: "Run everything on this machine in one process: a gateway, and a project server for each work directory\n" +
			"DIR, registered under the directory's name, or the repository's for …/.huskies/work and …/work; a second\n" +
			"one of the same name has the folder above in front. DIR may also be the repository. In a single DIR that\n" +
			"is empty, stage directories are created, and with --create in one that does not exist. Without DIR those of\n" +
			"the last start are served, and at first the sample, which a start with a DIR removes. With --agent, a\n" +
			"build agent runs as well, assigned to the first project, and runs CMD. If SWITCHYARD_PROJECT_TOKEN is set,\n" +
			"the project servers require that token, and the gateway uses it. Where a gateway runs on the data\n" +
			"directory already, DIR is served beside it, and registered there by the token in SWITCHYARD_API_TOKEN.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(cmd.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			dirs, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				dirs, command = args[:dash], args[dash:]
			}
			switch err := domain.CheckAgentLabel(agent); {
			case u.sample && len(dirs) > 0:
				return usagef("--sample takes no DIR")
			case !cmd.Flags().Changed("agent") && len(command) > 0:
				return usagef("CMD requires --agent LABEL, the agent that runs it")
			case cmd.Flags().Changed("agent") && err != nil:
				return usagef("--agent: %s", domain.MessageOf(err))
			}
			if cmd.Flags().Changed("name") {
				if len(dirs) != 1 {
					return usagef("--name names a single DIR")
				}
				name = strings.TrimSpace(name)
				if err := domain.CheckProjectName(name); err != nil {
					return usagef("--name: as a project's %s", domain.MessageOf(err))
				}
			}
			boards, err := boardsOf(dirs, u.create, u.git.NoWorktrees, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if name != "" {
				boards[0].name, boards[0].named = name, true
				for i := range boards[1:] {
					boards[i+1].name = name + "-" + boards[i+1].Layout
				}
			}
			if u.token, err = config.ProjectToken(os.Getenv); err != nil {
				return err
			}
			log := newStartLog(cmd.ErrOrStderr(), c)
			defer log.ended()
			u.gateway, err = openGateway(cmd.Context(), c, log)
			if inUse, ok := errors.AsType[inUseError](err); ok && len(dirs) > 0 {
				return serveBeside(cmd.Context(), inUse, cmd.Flags(), boards, u, log.log, cmd.OutOrStdout())
			}
			if err != nil {
				return supervise.UnlessEnded(cmd.Context(), err)
			}
			u.prepare = func(ctx context.Context, out io.Writer) error { return u.register(ctx, boards, len(dirs) > 0, out) }
			if agent != "" {
				err = u.runWithAgent(cmd.Context(), cmd.OutOrStdout(), agent, command)
			} else {
				err = u.run(cmd.Context(), cmd.OutOrStdout())
			}
			return errors.Join(err, u.close())
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&agent, "agent", "", "also run a build agent named `LABEL`, assigned to the first project")
	cmd.Flags().StringVar(&name, "name", "", "register a single DIR as the project `N`")
	cmd.Flags().BoolVar(&u.sample, "sample", false, "serve the sample, even after it was removed")
	u.git.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&u.create, "create", false, "make a DIR that does not exist, with stage directories")
	return cmd
}

// register registers the boards, those of the last start, or the sample. named says that directories were named.
func (u *up) register(ctx context.Context, boards []workBoard, named bool, out io.Writer) error {
	boards, err := u.boardsOfStart(ctx, boards, out)
	if err != nil {
		return err
	}
	if boards, err = u.withSample(ctx, boards, named, out); err != nil {
		return err
	}
	if err := u.addBoards(ctx, boards, out); err != nil {
		return err
	}
	return u.registered(ctx)
}

// runWithAgent runs the gateway together with a build agent that joins it automatically. The agent ends first, so that
// it can tell the gateway that it is stopping.
func (u *up) runWithAgent(ctx context.Context, out io.Writer, label string, command []string) error {
	whenWaiting := startsWhenWaiting(command)
	command, err := askingCommand(command, u.config.Data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	asked := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { asked <- time.Now() })
	options := agentrun.Options{
		Gateway: baseURL(u.config.Listen, u.listeners), Label: label, Version: version(),
		StateFile: filepath.Join(u.config.Data, agentStateName(label)),
		Token: func(ctx context.Context) (domain.Secret, error) {
			token, _, err := u.service.Agents.CreateJoinToken(ctx, u.first)
			return token, err
		},
		Rejoin:  true,
		Command: command, WhenWaiting: whenWaiting, Environment: os.Environ(), Output: raw(out), Log: u.log,
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		select {
		case <-u.begun:
			u.assign(ctx, label)
		case <-ctx.Done():
		}
		supervise.Run(ctx, u.log, "agent", func(ctx context.Context) error {
			if err := agentrun.Run(ctx, options); err != nil { // not started again: somebody may have removed it in the console
				u.log.Error("the agent ended", "agent", label, "error", err)
			}
			return nil
		})
		stop(stoppedAt{<-asked})
	})
	err = u.run(serving, out)
	cancel()
	ended.Wait()
	return err
}

const servedAt = "Project %s is served at %s from %s (%s)\n"

// addBoards starts a project server for each board and registers it; the first becomes the active project if there is
// none. It prints the addresses and directories to out.
func (u *up) addBoards(ctx context.Context, boards []workBoard, out io.Writer) error {
	for _, b := range boards {
		address, err := u.addBoard(ctx, b)
		if err != nil {
			return fmt.Errorf("project %s: %w", b.name, err)
		}
		fmt.Fprintf(out, servedAt, b.name, address, b.Dir, b.Layout)
	}
	if len(boards) == 0 {
		return nil
	}
	if u.first = boards[0].name; u.service.Projects.Registry().Active == "" {
		return u.service.Projects.Switch(ctx, u.first)
	}
	return nil
}

// assign assigns an earlier start's agent to the first project unless it has one. A new one is assigned on joining.
func (u *up) assign(ctx context.Context, label string) {
	for _, agent := range u.service.Agents.All() {
		if agent.Label == label && agent.Project == "" && u.first != "" {
			if _, err := u.service.Agents.Assign(ctx, agent.ID, u.first); err != nil {
				u.log.WarnContext(ctx, "the agent could not be assigned", "agent", label, "error", err)
			}
		}
	}
}

func (u *up) addBoard(ctx context.Context, b workBoard) (address string, err error) {
	server, err := openProject(&config.Project{
		Name: b.name, Work: b.Dir, Layout: b.Layout, Token: u.token, AllowWrites: true, Git: u.git,
	}, u.log)
	if err != nil {
		return "", err
	}
	listeners, err := u.listenAgain(b.name)
	if err != nil {
		return "", err
	}
	u.addCloser(func() error { closeAll(listeners); return nil })
	address = baseURL(loopback, listeners)
	if _, err := u.service.Projects.Ensure(ctx, b.name, address, &u.token); err != nil {
		return "", err
	}
	u.loops = append(u.loops, loop{
		"project server of " + b.name,
		func(ctx context.Context) error {
			if b.ends != nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(b.ends, cancel)()
			}
			return server.run(ctx, listeners)
		},
	})
	return address, nil
}

const loopback = "127.0.0.1:0"

// listenAgain listens where the project was served at the last start, so that agents and programs keep its address, or
// on another port if that one is taken.
func (u *up) listenAgain(project string) ([]net.Listener, error) {
	if p, registered := u.service.Projects.Registry().Find(project); registered {
		if listeners := listenAt(u.log, p.URL); listeners != nil {
			return listeners, nil
		}
	}
	return listen(u.log, loopback)
}

// listenAt listens at an address, and returns nil if it is not one of this machine's, or taken.
func listenAt(log *slog.Logger, address string) []net.Listener {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "http" || at.Hostname() != "127.0.0.1" || at.Port() == "" {
		return nil
	}
	listeners, err := listen(log, at.Host)
	if err != nil {
		return nil
	}
	return listeners
}
