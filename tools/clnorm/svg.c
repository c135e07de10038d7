#include "svg.h"

#include <string.h>

static const char style[] = "text { font: 11px sans-serif; fill: #24292f }\n"
                            ".title { font-size: 15px }\n"
                            ".name { font-size: 13px; font-weight: bold }\n"
                            ".axis { stroke: #6e7781 }\n"
                            ".grid { stroke: #6e7781; stroke-opacity: .25 }\n"
                            ".copy { fill: none; stroke-width: 1.5; stroke-opacity: .6; stroke-dasharray: 5 3 }\n"
                            ".series { fill: none; stroke-width: 2 }\n"
                            ".unfused { fill: none; stroke-width: 2; stroke-dasharray: 1.5 2.5 }\n"
                            "@media (prefers-color-scheme: dark) { text { fill: #d0d7de } }\n";

void svg_begin(int width, int height, int left, const char *title, FILE *stream) {
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n<style>\n%s"
            "</style>\n<text class=\"title\" x=\"%d\" y=\"24\">",
            width, height, width, height, style, left);
    svg_escaped(title, stream);
    fputs("</text>\n", stream);
}

void svg_end(FILE *stream) {
    fputs("</svg>\n", stream);
}

void svg_escaped(const char *text, FILE *stream) {
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", stream);
            break;
        case '<':
            fputs("&lt;", stream);
            break;
        case '>':
            fputs("&gt;", stream);
            break;
        default:
            fputc(*text, stream);
        }
}

const char *svg_colour(clnorm_dtype dtype) {
    switch (dtype) {
    case CLNORM_BF16:
        return "#e4572e";
    case CLNORM_F16:
        return "#2a9d4e";
    case CLNORM_F64:
        return "#9b5de5";
    default:
        return "#3b82f6";
    }
}

int svg_entry(int x, const char *kind, const char *colour, const char *text, FILE *stream) {
    enum { LINE = 28, LETTER = 6, GAP = 26, Y = 48 };
    fprintf(stream, "<line class=\"%s\" stroke=\"%s\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", kind, colour, x, Y,
            x + LINE, Y);
    fprintf(stream, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + LINE + 6, Y + 4, text);
    return x + LINE + GAP + LETTER * (int)strlen(text);
}
