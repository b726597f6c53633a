-- What does the segment at `place` of a scope key name? (1 tenant, 2 principal, 3 conversation; '_' is absence.)
CREATE MACRO segment_of(key, place) AS
    CASE
        WHEN split_part(key, '/', place) = '_' THEN NULL
        ELSE replace(replace(replace(split_part(key, '/', place), '%5F', '_'), '%2F', '/'), '%25', '%')
    END;
