package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Plot is a line chart. The y axis begins at 0.
type Plot struct {
	Title, XLabel, YLabel string
	// Log makes the x axis logarithmic.
	Log    bool
	Series []Series
}

// Series is one line.
type Series struct {
	Name   string
	Points []Point
}

// Point is one value.
type Point struct{ X, Y float64 }

// The size of a plot, and of the borders around its axes.
const (
	width, height         = 640.0, 360.0
	left, right           = 64.0, 110.0
	top, bottom           = 36.0, 48.0
	tickCount             = 5
	plotRight, plotBottom = width - right, height - bottom
)

// colors of the lines, which people with color blindness can tell apart.
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

// scale maps values to positions.
type scale struct {
	low, high, from, to float64
	log                 bool
}

// at returns the position of a value.
func (s scale) at(value float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, value = math.Log(low), math.Log(high), math.Log(value)
	}
	if low == high {
		return (s.from + s.to) / 2
	}
	return s.from + (value-low)/(high-low)*(s.to-s.from)
}

// scales returns the scales of both axes.
func (p Plot) scales() (x, y scale) {
	x = scale{low: math.Inf(1), high: math.Inf(-1), from: left, to: plotRight, log: p.Log}
	y = scale{from: plotBottom, to: top}
	for _, series := range p.Series {
		for _, point := range series.Points {
			x.low, x.high, y.high = min(x.low, point.X), max(x.high, point.X), max(y.high, point.Y)
		}
	}
	step := niceStep(y.high / tickCount)
	y.high = math.Ceil(y.high/step) * step
	return x, y
}

// niceStep returns the next larger one of 1, 2 and 5 times a power of ten.
func niceStep(least float64) float64 {
	if least <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least {
			return factor * power
		}
	}
	return 10 * power
}

// SVG returns the picture.
func (p Plot) SVG() string {
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12" role="img">`+"\n", width, height)
	fmt.Fprintf(&svg, "<title>%s</title>\n", html.EscapeString(p.Title))
	fmt.Fprintf(&svg, `<rect width="%g" height="%g" fill="#ffffff"/>`+"\n", width, height)
	label(&svg, left, top-16, "start", p.Title)
	label(&svg, (left+plotRight)/2, height-12, "middle", p.XLabel)
	x, y := p.scales()
	p.axes(&svg, x, y)
	for i, series := range p.Series {
		series.draw(&svg, x, y, colors[i%len(colors)])
	}
	p.names(&svg, y)
	svg.WriteString("</svg>\n")
	return svg.String()
}

// label writes a text.
func label(svg *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(svg, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222222">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

// axes draws the grid, the values of the y axis, and those of the x axis that have points.
func (p Plot) axes(svg *strings.Builder, x, y scale) {
	step := niceStep(y.high / tickCount)
	for value := 0.0; value <= y.high*1.0001; value += step {
		fmt.Fprintf(svg, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1[3]f" stroke="#dddddd"/>`+"\n", left, plotRight, y.at(value))
		label(svg, left-6, y.at(value)+4, "end", fmt.Sprintf("%g", round(value)))
	}
	fmt.Fprintf(svg, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle" fill="#222222">%s</text>`+"\n", (top+plotBottom)/2, html.EscapeString(p.YLabel))
	drawn := map[float64]bool{}
	for _, series := range p.Series {
		for _, point := range series.Points {
			if !drawn[point.X] {
				drawn[point.X] = true
				label(svg, x.at(point.X), plotBottom+18, "middle", fmt.Sprintf("%.12g", point.X))
			}
		}
	}
}

// round removes what is left of adding steps.
func round(value float64) float64 { return math.Round(value*1e6) / 1e6 }

// draw draws the line and its points.
func (s Series) draw(svg *strings.Builder, x, y scale, color string) {
	var line []string
	for _, point := range s.Points {
		line = append(line, fmt.Sprintf("%.1f,%.1f", x.at(point.X), y.at(point.Y)))
		fmt.Fprintf(svg, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(point.X), y.at(point.Y), color)
	}
	fmt.Fprintf(svg, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, " "), color)
}

// names writes the name of each line beside its last point, one below the other.
func (p Plot) names(svg *strings.Builder, y scale) {
	const lineHeight = 16
	taken := map[int]bool{}
	for i, series := range p.Series {
		if len(series.Points) == 0 {
			continue
		}
		row := int(y.at(series.Points[len(series.Points)-1].Y)) / lineHeight
		for taken[row] {
			row++
		}
		taken[row] = true
		fmt.Fprintf(svg, `<text x="%g" y="%d" fill="%s">%s</text>`+"\n", plotRight+8, row*lineHeight+lineHeight/2, colors[i%len(colors)], html.EscapeString(series.Name))
	}
}
