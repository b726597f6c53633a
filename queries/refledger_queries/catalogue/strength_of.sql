-- How well is an edge of this grade known? 1 is the strongest.
CREATE MACRO strength_of(grade) AS
    list_position(
        [
            'delivered',
            'delivered-unverified',
            'declared',
            'cited',
            'described',
            'in-window',
            'offered',
            'spoken',
            'inferred',
            'preceded'
        ],
        grade
    );
