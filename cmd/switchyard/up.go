package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

func upCommand() *cobra.Command {
	var agent, name string
	var create, sample bool
	cmd := &cobra.Command{
		ValidArgsFunction: completeDirs,

		Use:   "up [--name N] [--create] [--sample] [DIR…] [--agent LABEL [-- CMD ARG…]]",
		Short: "Run everything on this machine: a gateway, and a project server for each work directory",
		Long: "Run everything on this machine in one process: a gateway, and a project server for each work directory\n" +
			"DIR, registered under the directory's name, or the repository's for …/.huskies/work and …/work; a second\n" +
			"one of the same name has the folder above in front. DIR may also be the repository. In a single DIR that\n" +
			"is empty, stage directories are created, and with --create in one that does not exist. Without DIR those of\n" +
			"the last start are served, and at first a sample board, which a start with a DIR removes. With --agent, a\n" +
			"build agent runs as well, assigned to the first project, and runs CMD. If SWITCHYARD_PROJECT_TOKEN is set,\n" +
			"the project servers require that token, and the gateway uses it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(cmd.Flags(), os.Getenv)
			if err != nil {
				return asUsage(err)
			}
			dirs, command := args, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				dirs, command = args[:dash], args[dash:]
			}
			switch err := domain.CheckAgentLabel(agent); {
			case sample && len(dirs) > 0:
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
			boards, err := boardsOf(dirs, create, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if name != "" {
				boards[0].name, boards[0].named = name, true
				for i := range boards[1:] {
					boards[i+1].name = name + "-" + boards[i+1].Layout
				}
			}
			token, err := config.ProjectToken(os.Getenv)
			if err != nil {
				return err
			}
			log := newStartLog(cmd.ErrOrStderr(), c)
			defer log.ended()
			g, err := openGateway(cmd.Context(), c, log)
			if err != nil {
				return supervise.UnlessEnded(cmd.Context(), err)
			}
			g.prepare = func(ctx context.Context, out io.Writer) error {
				boards, err := g.boardsOfStart(ctx, boards, create, out)
				if err != nil {
					return err
				}
				if boards, err = g.withSample(ctx, boards, sample, len(dirs) > 0, out); err != nil {
					return err
				}
				return g.addBoards(ctx, boards, token, out)
			}
			if agent != "" {
				err = g.runWithAgent(cmd.Context(), cmd.OutOrStdout(), agent, command)
			} else {
				err = g.run(cmd.Context(), cmd.OutOrStdout())
			}
			return errors.Join(err, g.close())
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&agent, "agent", "", "also run a build agent named `LABEL`, assigned to the first project")
	cmd.Flags().StringVar(&name, "name", "", "register a single DIR as the project `N`")
	cmd.Flags().BoolVar(&sample, "sample", false, "serve the sample board, even after it was removed")
	cmd.Flags().BoolVar(&create, "create", false, "make a DIR that does not exist, with stage directories")
	return cmd
}

// runWithAgent runs the gateway together with a build agent that joins it automatically. The agent ends first, so that
// it can tell the gateway that it stops.
func (g *gateway) runWithAgent(ctx context.Context, out io.Writer, label string, command []string) error {
	command, err := askingCommand(command, g.config.Data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	asked := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { asked <- time.Now() })
	options := agentrun.Options{
		Gateway: baseURL(g.config.Listen, g.listeners), Label: label, Version: version(),
		StateFile: filepath.Join(g.config.Data, agentStateName(label)),
		Token: func(ctx context.Context) (domain.Secret, error) {
			token, _, err := g.service.Agents.CreateJoinToken(ctx, g.first)
			return token, err
		},
		Rejoin:  true,
		Command: command, Environment: os.Environ(), Output: out, Log: g.log,
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		select {
		case <-g.begun:
			g.assign(ctx, label)
		case <-ctx.Done():
		}
		supervise.Run(ctx, g.log, "agent", func(ctx context.Context) error {
			if err := agentrun.Run(ctx, options); err != nil { // not started again: somebody may have removed it in the console
				g.log.Error("the agent ended", "agent", label, "error", err)
			}
			return nil
		})
		stop(stoppedAt{<-asked})
	})
	err = g.run(serving, out)
	cancel()
	ended.Wait()
	return err
}

// addBoards starts a project server with the given token for each board and registers it; the first becomes the active
// project if there is none. The addresses and directories are printed to out.
func (g *gateway) addBoards(ctx context.Context, boards []workBoard, token domain.Secret, out io.Writer) error {
	for _, b := range boards {
		address, err := g.addBoard(ctx, b, token)
		if err != nil {
			return fmt.Errorf("project %s: %w", b.name, err)
		}
		fmt.Fprintf(out, "Project %s is served at %s from %s (%s)\n", b.name, address, b.Dir, b.Layout)
	}
	if len(boards) == 0 {
		return nil
	}
	if g.first = boards[0].name; g.service.Projects.Registry().Active == "" {
		return g.service.Projects.Switch(ctx, g.first)
	}
	return nil
}

// assign assigns the agent of an earlier start to the first project, unless it has one. A new agent is when it joins.
func (g *gateway) assign(ctx context.Context, label string) {
	for _, agent := range g.service.Agents.All() {
		if agent.Label == label && agent.Project == "" && g.first != "" {
			if _, err := g.service.Agents.Assign(ctx, agent.ID, g.first); err != nil {
				g.log.WarnContext(ctx, "the agent could not be assigned", "agent", label, "error", err)
			}
		}
	}
}

func (g *gateway) addBoard(ctx context.Context, b workBoard, token domain.Secret) (address string, err error) {
	server, err := openProject(&config.Project{
		Name: b.name, Work: b.Dir, Layout: b.Layout, Token: token, AllowWrites: true,
	}, g.log)
	if err != nil {
		return "", err
	}
	const anyPort = "127.0.0.1:0"
	listeners, err := listen(g.log, anyPort)
	if err != nil {
		return "", err
	}
	g.addCloser(func() error { closeAll(listeners); return nil })
	address = baseURL(anyPort, listeners)
	if _, err := g.service.Projects.Ensure(ctx, b.name, address, &token); err != nil {
		return "", err
	}
	g.loops = append(g.loops, loop{
		"project server of " + b.name,
		func(ctx context.Context) error { return server.run(ctx, listeners) },
	})
	return address, nil
}
