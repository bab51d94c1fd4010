const colour = (name) => `var(--${name})`

const words = (text, pattern) => [...text.matchAll(pattern)].flatMap(([found]) => found.split(/[\s"'`{},()<>=]+/))

/** @type {import('tailwindcss').Config} */
module.exports = {
  content: {
    files: ['./views/*.templ', './views/{numbers,state}.go', './static/*.js'],
    // Only what is meant as a class: any other word that happens to be one of Tailwind's would become a rule as well.
    extract: {
      templ: (text) => words(text, /class=(?:"[^"]*"|\{[^}]*)|templ\.KV\(.*|(?:Part\{|makeActive\().*/g),
      go: (text) => words(text, /"[^"\n]*"/g),
      js: (text) => words(text, /class.*/gi),
    },
  },
  // Left out: a reset of our own in static/src/app.css, and what is not used, whose variables would cost half a kilobyte.
  corePlugins: Object.fromEntries(
    [
      'preflight',
      'borderSpacing', 'transform', 'translate', 'rotate', 'skew', 'scale', 'touchAction', 'scrollSnapType', 'backgroundImage', 'gradientColorStops',
      'fontVariantNumeric', 'ringWidth', 'ringColor', 'ringOffsetWidth', 'ringOffsetColor', 'ringOpacity', 'boxShadow', 'boxShadowColor', 'contain',
      'blur', 'brightness', 'contrast', 'dropShadow', 'grayscale', 'hueRotate', 'invert', 'saturate', 'sepia', 'filter',
      'backdropBlur', 'backdropBrightness', 'backdropContrast', 'backdropGrayscale', 'backdropHueRotate', 'backdropInvert',
      'backdropOpacity', 'backdropSaturate', 'backdropSepia', 'backdropFilter',
    ].map((name) => [name, false]),
  ),
  theme: {
    screens: { sm: '30em', md: '45em', lg: '68.75em', xl: '100em' }, // in letters: large text takes the small layout
    // Names say what a colour is for. Their values for light and dark are in static/src/app.css.
    colors: {
      transparent: 'transparent',
      current: 'currentColor',
      surface: colour('surface'), // behind everything
      raised: colour('raised'), // tables, cards, the header
      sunken: colour('sunken'), // heads of tables, code
      line: colour('line'), // separates
      edge: colour('edge'), // bounds what can be operated
      ink: colour('ink'),
      muted: colour('muted'),
      accent: { DEFAULT: colour('accent'), ink: colour('accent-ink'), tint: colour('accent-tint') },
      clear: { DEFAULT: colour('clear'), tint: colour('clear-tint') },
      caution: { DEFAULT: colour('caution'), tint: colour('caution-tint') },
      stop: { DEFAULT: colour('stop'), tint: colour('stop-tint') },
    },
    fontFamily: {
      sans: ['system-ui', '-apple-system', '"Segoe UI"', 'Roboto', '"Noto Sans"', 'sans-serif'],
      mono: ['ui-monospace', '"SF Mono"', 'Menlo', 'Consolas', '"DejaVu Sans Mono"', 'monospace'],
    },
    fontSize: {
      xs: ['0.75rem', '1rem'],
      base: ['0.875rem', '1.25rem'],
      lg: ['0.9375rem', '1.375rem'],
      title: ['1.5rem', '1.875rem'],
    },
    borderRadius: { none: '0', DEFAULT: '7px', md: '5px', lg: '10px', full: '9999px' },
    extend: {},
  },
}
