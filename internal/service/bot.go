package service

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

type BotFile interface {
	// Load returns the file's content; without a file, the transport is matrix and nothing else is set.
	Load() (domain.BotConfig, error)
	Save(domain.BotConfig) error
	Name() string // for people
}

type Bot struct {
	Operators []string // user ids that may command the bot

	audit     *Audit
	pipelines *Pipelines
	file      BotFile
	runner    BotRunner
	shared    *sharedRunner // the runner, nil if no other gateway shares the store
	saves     chan struct{} // holds a value during a save
}

// Config returns the stored configuration, with its secrets, or an Internal error with the reason.
func (s *Bot) Config(ctx context.Context) (config domain.BotConfig, err error) {
	if s.shared != nil {
		config, _, err = s.shared.Store.BotConfig(ctx)
		return config, err
	}
	if config, err = s.file.Load(); err != nil {
		return domain.BotConfig{}, explain(err, "the bot configuration cannot be read: ")
	}
	return config, nil
}

// Save stores config and restarts the bot, one save at a time. It returns Invalid for an unknown transport, and
// Internal with the reason if saving or restarting fails; it takes at most 10 s.
func (s *Bot) Save(ctx context.Context, config domain.BotConfig) error {
	if err := domain.CheckTransport(config.Transport); err != nil {
		return err
	}
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return err
	}
	// A caller that leaves must not leave a saved configuration with the old bot running.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	select {
	case s.saves <- struct{}{}:
		defer func() { <-s.saves }()
	case <-ctx.Done():
		return domain.Errorf(domain.Internal, "nothing was saved: an earlier save is still running")
	}
	before, _ := s.Config(ctx) // an unreadable one is replaced
	var err error
	if s.shared != nil {
		err = s.shared.Store.SaveBotConfig(ctx, config)
	} else {
		err = s.file.Save(config)
	}
	if domain.CodeOf(err) == domain.Unavailable { // the database cannot be reached
		return err
	}
	if err != nil {
		return explain(err, "the bot configuration could not be saved: ")
	}
	s.audit.changed(ctx, domain.Change{
		Action: domain.BotConfigured, Subject: string(config.Transport), Detail: configChange(before, config),
	})
	if err := s.runner.Restart(ctx); err != nil {
		return explain(err, "the configuration is saved, but the bot did not restart: ")
	}
	return nil
}

// Starting returns the source of the configuration for a bot that starts.
func (s *Bot) Starting() interface {
	Config(ctx context.Context) (domain.BotConfig, error)
} {
	if s.shared != nil {
		return s.shared
	}
	return s
}

func (s *Bot) Status() domain.BotStatus { return s.runner.Status() }

// Test sends a test message to all of the bot's rooms. It returns BadGateway with the reason if that fails.
func (s *Bot) Test(ctx context.Context) error {
	if err := domain.ActorOf(ctx).CheckScope(""); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, testLimit)
	defer cancel()
	err := s.runner.SendTest(limited)
	if err == nil {
		s.audit.changed(ctx, domain.Change{
			Action: domain.BotTested, Subject: string(s.Status().Transport), Detail: "a test message was sent to every room",
		})
	}
	return err
}

func configChange(before, now domain.BotConfig) string {
	parts := []string{changeOf("transport", string(before.Transport), string(now.Transport))}
	for _, setting := range domain.BotSettings() {
		name := strings.ReplaceAll(strings.TrimPrefix(setting.Key, "team_"), "_", " ")
		old, set := before.Settings[setting.Key], now.Settings[setting.Key]
		if setting.Kind == "password" {
			parts = append(parts, secretChange(name, old, set))
		} else {
			parts = append(parts, changeOf(name, old.Reveal(), set.Reveal()))
		}
	}
	return details(parts...)
}

// explain adds the cause to an error's message. Only administrators may see it.
func explain(err error, message string) error {
	reason := err.Error()
	if known, ok := errors.AsType[*domain.Error](err); ok {
		reason, err = known.Message, known.Cause
	}
	return domain.WrapError(domain.Internal, err, message+reason)
}

// share shares the bot among several gateways. It stores the file's configuration in the database once; after that the
// file is ignored, which is logged if it differs.
func (s *Bot) share(ctx context.Context, o SharedBot, changes Changes, log *slog.Logger) error {
	s.shared = &sharedRunner{SharedBot: o, local: s.runner, changes: changes, log: log, since: clock.Now()}
	s.runner = s.shared
	_, version, err := s.shared.Store.BotConfig(ctx)
	if err != nil {
		return err
	}
	s.shared.started = version // the local bot starts with this version or a later one
	c, err := s.file.Load()
	if err != nil {
		log.WarnContext(ctx, "the bot's configuration file is ignored: the configuration is in the database", "error", err)
		return nil
	}
	if c.IsDefault() { // no file
		return nil
	}
	imported, err := s.shared.Store.ImportBotConfig(ctx, c)
	switch {
	case err != nil:
		return err
	case imported:
		log.InfoContext(ctx, "the bot's configuration file was imported into the database, which is used from now on")
	case s.fileDiffers(ctx):
		log.WarnContext(ctx, "the bot's configuration file differs from the database and is ignored", "file", s.file.Name())
	}
	return nil
}

// IgnoredFile returns the name of the bot's configuration file if it differs from the configuration in the database,
// which is used instead; "" otherwise.
func (s *Bot) IgnoredFile(ctx context.Context) string {
	if s.shared == nil || !s.fileDiffers(ctx) {
		return ""
	}
	return s.file.Name()
}

func (s *Bot) fileDiffers(ctx context.Context) bool {
	inFile, err := s.file.Load()
	if err == nil && inFile.IsDefault() {
		return false // there is none
	}
	stored, _, storeErr := s.shared.Store.BotConfig(ctx)
	return storeErr == nil && (err != nil || !inFile.Equal(stored))
}
