package service

import (
	"context"
	"log/slog"

	"switchyard/internal/clock"
)

// share makes several gateways share the bot.
func (s *Bot) share(ctx context.Context, o SharedBot, changes Changes, log *slog.Logger) error {
	s.shared = &sharedRunner{SharedBot: o, local: s.runner, changes: changes, log: log, since: clock.Now()}
	s.runner = s.shared
	return s.importFile(ctx, log)
}

// importFile stores the file's configuration in the database once. After that the file is ignored, which is logged if
// it differs.
func (s *Bot) importFile(ctx context.Context, log *slog.Logger) error {
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
