package main

import (
	"fmt"
	"html"
	"math"
	"strings"

	"evenpool/alloc/simulate"
)

// Sizes of the picture, in units of its view box.
const (
	svgLeft, svgPlot, svgRight  = 190, 560, 190 // the columns: policies, plots, figures
	svgTop, svgRow, svgPlotHigh = 74, 62, 44    // the head, each row, and the plot in it
	svgBottom                   = 34
)

// svgStyle has both grounds in it: whoever shows the picture says which.
const svgStyle = `<style>
  svg { font: 13px system-ui, sans-serif; background: #fff }
  text { fill: #1f2328 } .dim { fill: #59636e } .title { font-size: 16px; font-weight: 600 } .tick { font-size: 10px }
  .area { fill: #0969da; stroke: #0969da; stroke-width: 1.5; stroke-linejoin: round } .grid { stroke: #d1d9e0 }
  @media (prefers-color-scheme: dark) {
    svg { background: #0d1117 } text { fill: #e6edf3 } .dim { fill: #9198a1 }
    .area { fill: #4493f8; stroke: #4493f8 } .grid { stroke: #3d444d }
  }
</style>
`

// svg draws how many allocations in a row went to one proxy, over time: a row for each policy, all on
// one logarithmic scale. It needs nothing but itself.
func (s simulation) svg() string {
	decades := max(1, int(math.Ceil(math.Log10(float64(max(2, s.longestRun()))))))
	width, height := svgLeft+svgPlot+svgRight, svgTop+svgRow*len(s.Results)+svgBottom
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">`+"\n", width, height)
	fmt.Fprintf(&out, "<title>Allocations in a row to one proxy, by start and restore policy</title>\n%s", svgStyle)
	fmt.Fprintf(&out, `<text class="title" x="16" y="28">Allocations in a row to one proxy, by policy</text>`+"\n")
	fmt.Fprintf(&out, `<text class="dim" x="16" y="50">%s</text>`+"\n", html.EscapeString(s.title()))
	for i, r := range s.Results {
		s.svgRow(&out, r, svgTop+i*svgRow, decades)
	}
	foot := svgTop + svgRow*len(s.Results)
	for i, ticks := 0, 4; i <= ticks; i++ {
		fmt.Fprintf(&out, `<text class="dim tick" x="%d" y="%d" text-anchor="middle">%.3g</text>`+"\n", svgLeft+svgPlot*i/ticks, foot, s.Hours*float64(i)/float64(ticks))
	}
	fmt.Fprintf(&out, `<text class="dim" x="%d" y="%d" text-anchor="middle">hours</text>`+"\n", svgLeft+svgPlot/2, foot+20)
	fmt.Fprintf(&out, `<text class="dim" transform="translate(146 %d) rotate(-90)" text-anchor="middle">in a row, at most in each %s (logarithmic scale)</text>`+"\n", (svgTop+foot)/2, seconds(s.pointSeconds()))
	out.WriteString("</svg>\n")
	return out.String()
}

// svgRow draws one policy.
func (s simulation) svgRow(out *strings.Builder, r simulate.Result, top, decades int) {
	base := top + svgPlotHigh
	fmt.Fprintf(out, `<text x="16" y="%d">start %s</text><text x="16" y="%d">restore %s</text>`+"\n", top+18, r.Start, top+36, r.Restore)
	for decade := range decades + 1 {
		y := float64(base) - float64(svgPlotHigh*decade)/float64(decades)
		fmt.Fprintf(out, `<path class="grid" d="M%d %.1fH%d"/>`, svgLeft, y, svgLeft+svgPlot)
		if decade%max(1, (decades+2)/3) == 0 { // three of them have room
			fmt.Fprintf(out, `<text class="dim tick" x="%d" y="%.1f" text-anchor="end">%.0f</text>`, svgLeft-5, y+3.5, math.Pow10(decade))
		}
	}
	fmt.Fprintf(out, "\n"+`<path class="area" d="M%d %d`, svgLeft, base)
	for i, p := range r.OverTime {
		y := float64(base) - svgPlotHigh*math.Log10(float64(max(1, p.Run)))/float64(decades)
		fmt.Fprintf(out, "V%.1fH%.1f", y, svgLeft+svgPlot*float64(i+1)/float64(len(r.OverTime)))
	}
	fmt.Fprintf(out, `V%dZ"/>`+"\n", base)
	fmt.Fprintf(out, `<text x="%d" y="%d">at most %d in a row</text><text class="dim" x="%[1]d" y="%[4]d">largest share %.1f%%</text>`+"\n",
		svgLeft+svgPlot+14, top+18, r.LongestRun, top+36, 100*r.LargestShare)
}
